"""When a command that was given has come to its end: decided from the model's state and its events."""

from __future__ import annotations

from typing import Any

import pytest

from framework.api.shapes import model_json
from framework.commands.waiting import IDLE_LIMIT_S, Command, describe, judge
from framework.values.instance import LoadProgress, State
from framework.values.reason import Reason
from tests.api import samples


def model(state: State, *, replacing: bool = False, **changes: Any) -> dict[str, Any]:
    """A model whose one instance is in this state."""
    document = model_json(samples.model("chat", samples.instance(state=state, **changes), state=state))
    return {**document, "replacing": replacing}


def event(kind: str, message: str = "happened") -> dict[str, Any]:
    return {"kind": kind, "message": message, "reason": {"message": message, "remedy": "Do this."}}


@pytest.mark.parametrize(
    ("command", "state", "events", "done"),
    [
        pytest.param("load", State.READY, [], True, id="already-up"),
        pytest.param("load", State.STARTING, [], False, id="on-its-way"),
        pytest.param("load", State.STOPPED, [], False, id="not-begun"),
        pytest.param("reload", State.READY, [], False, id="still-the-old-one"),
        pytest.param("reload", State.READY, ["ready"], True, id="the-new-one"),
        pytest.param("reload", State.READY, ["replaced"], True, id="replaced"),
        pytest.param("unload", State.DRAINING, [], False, id="draining"),
        pytest.param("unload", State.READY, [], False, id="not-yet"),
    ],
)
def test_state_and_events_decide_whether_it_is_done(
    command: Command, state: State, events: list[str], done: bool
) -> None:
    outcome = judge(command, model(state), [event(kind) for kind in events], waited_s=0)
    assert (outcome is not None and outcome.ok) is done


def test_replan_is_done_when_the_plan_is_the_same_or_another_one_serves() -> None:
    same = {**event("replanned", "the plan is the same"), "data": {"replaces": False}}
    outcome = judge("replan", model(State.READY), [same], waited_s=0)
    assert outcome is not None
    assert (outcome.ok, outcome.message) == (True, "the plan is the same")
    other = {**event("replanned"), "data": {"replaces": True}}
    assert judge("replan", model(State.READY), [other], waited_s=0) is None
    outcome = judge("replan", model(State.READY), [other, event("replaced")], waited_s=0)
    assert outcome is not None
    assert outcome.ok
    assert judge("replan", model(State.READY), [], waited_s=0) is None


def test_a_model_whose_new_settings_failed_is_not_called_ready_alone() -> None:
    failed = Reason("load_failed", "The new ones failed.", "Do this.", "warning")
    outcome = judge("load", model(State.READY, last_error=failed), [], waited_s=0)
    assert outcome is not None
    assert outcome.ok
    assert outcome.message == "ready, with the settings before the last edit"


def test_unload_is_done_when_no_process_is_left() -> None:
    outcome = judge("unload", model(State.STOPPED, pid=None), [], waited_s=0)
    assert outcome is not None
    assert outcome.ok


def test_unload_is_not_done_while_a_process_lives() -> None:
    assert judge("unload", model(State.STOPPED, pid=4711), [], waited_s=60) is None


@pytest.mark.parametrize("kind", ["refused", "start_failed", "crash_loop", "rolled_back", "unkillable"])
def test_failure_since_the_command_ends_it_with_its_reason(kind: str) -> None:
    outcome = judge("load", model(State.BACKOFF), [event(kind, "no memory")], waited_s=0)
    assert outcome is not None
    assert not outcome.ok
    assert outcome.reason == {"message": "no memory", "remedy": "Do this."}


@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED, State.BACKOFF])
def test_model_that_stays_down_counts_as_failed_after_a_while(state: State) -> None:
    assert judge("load", model(state), [], waited_s=IDLE_LIMIT_S) is None
    outcome = judge("load", model(state), [], waited_s=IDLE_LIMIT_S + 0.1)
    assert outcome is not None
    assert not outcome.ok
    assert outcome.reason is not None


def test_long_load_never_counts_as_failed() -> None:
    assert judge("load", model(State.STARTING), [], waited_s=3600) is None


def test_replacement_in_progress_is_not_ready() -> None:
    assert judge("load", model(State.READY, replacing=True), [], waited_s=0) is None


def test_progress_is_told_in_steps() -> None:
    texts = {
        describe(model(State.STARTING, progress=LoadProgress("mapping", done, 2**30, done / 2**30)))
        for done in range(0, 2**30, 2**20)
    }
    assert len(texts) == 10
    assert "starting, 50 % of 1 GiB" in texts


def test_draining_tells_how_many_requests_are_left() -> None:
    assert describe(model(State.DRAINING, inflight=3)) == "draining, 3 requests in flight"
    assert describe(model(State.DRAINING, inflight=1)) == "draining, 1 request in flight"


def waits_for_memory(state: State = State.PLANNING) -> dict[str, Any]:
    """A model that is the second of its pool's queue."""
    document = model(state)
    return {**document, "queue": {**document["queue"], "position": 2}}


def test_a_model_that_waits_for_memory_says_so_and_its_place() -> None:
    assert describe(waits_for_memory()) == "waiting for memory, number 2 in its pool"
    assert describe(waits_for_memory(State.READY)) == "ready, number 2 in its pool"
    assert describe(model(State.PLANNING)) == "planning"


def verdict(severity: str, message: str = "x holds it.") -> dict[str, Any]:
    return {"code": "does_not_fit", "message": message, "remedy": "Unload x.", "severity": severity}


def test_a_load_for_which_nobody_makes_room_has_failed_though_it_stays_in_the_queue() -> None:
    verdicts = [verdict("error")]
    assert judge("load", waits_for_memory(), [], verdicts, waited_s=IDLE_LIMIT_S) is None
    outcome = judge("load", waits_for_memory(), [], verdicts, waited_s=IDLE_LIMIT_S + 0.1)
    assert outcome is not None
    assert (outcome.ok, outcome.reason, outcome.stays_queued) == (False, verdicts[0], True)


@pytest.mark.parametrize(
    ("state", "severities"),
    [
        pytest.param(State.PLANNING, ["info"], id="what-serves-makes-room-later"),
        pytest.param(State.PLANNING, ["error", "info"], id="one-replica-will-find-room"),
        pytest.param(State.STARTING, ["error"], id="one-replica-has-found-room"),
    ],
)
def test_a_wait_that_will_end_is_no_failure(state: State, severities: list[str]) -> None:
    verdicts = [verdict(severity) for severity in severities]
    assert judge("load", waits_for_memory(state), [], verdicts, waited_s=3600) is None
