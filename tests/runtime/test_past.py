"""What is said of a model between its unload and its next start: never what was, beside what is asked."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from framework.api.shapes import speculation_json
from framework.planning.speculation.decide import decide_speculation
from framework.reconcile.compare import compare_requests
from framework.runtime.past import as_asked
from framework.values.engine import Capabilities
from framework.values.instance import InstanceView, State
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import NO_FACTS, SpecInputs
from tests.api.metric_text import metrics_text
from tests.conftest import MakeFake
from tests.dashboard import samples
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.waiting import eventually

GAVE_UP = Reason("start_failed", "It ended.", severity="error")


async def test_an_unloaded_model_that_was_edited_shows_nothing_of_its_last_start(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf, live={"load": "on-demand"})
    rig.declare(request)
    rig.fleet.load("m", by="test")
    await rig.until("m", State.READY)
    rig.fleet.unload("m", by="test")
    stopped = await rig.until("m", State.STOPPED)
    assert stopped.plan is not None
    edited = changed(request, n_ctx=2048, slots=1)
    rig.declare(edited)
    seen = rig.instance("m")
    assert (seen.request.n_ctx, seen.plan, seen.result) == (2048, None, None)


@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED, State.BACKOFF])
def test_a_live_setting_leaves_the_last_start_to_be_seen(state: State) -> None:
    asked = samples.request()
    over = samples.instance(asked, state, plan=samples.plan(asked))
    renamed = replace(asked, live=replace(asked.live, display_name="other"))
    assert as_asked(over, renamed) == over


@pytest.mark.parametrize(
    ("state", "error"), [(State.STOPPED, None), (State.FAILED, GAVE_UP), (State.BACKOFF, GAVE_UP)]
)
def test_why_it_failed_outlives_an_edit(state: State, error: Reason | None) -> None:
    asked = samples.request()
    over = samples.instance(asked, state, plan=samples.plan(asked), last_error=GAVE_UP)
    seen = as_asked(over, replace(asked, slots=1))
    assert (seen.plan, seen.last_error, seen.request.slots) == (None, error, 1)


def test_what_runs_is_what_it_was_started_with() -> None:
    running = samples.instance(samples.request())
    assert as_asked(running, samples.request(slots=1)) == running


def without_head(mode: str) -> InstanceView:
    """A model without head that serves with a mode."""
    wish = SpecInputs(
        SpecPolicy(mode), NO_FACTS, Capabilities(conclusive=True, flags=frozenset({"--spec-default"}))
    )
    asked = replace(samples.request(), spec=wish.policy)
    plan = samples.plan(asked, spec=decide_speculation(wish), spec_inputs=wish)
    return samples.instance(asked, plan=plan)


def test_what_runs_is_told_with_a_policy_that_comes_to_the_same_flags() -> None:
    running = without_head("auto")
    assert running.plan is not None
    wanted = replace(running.request, spec=SpecPolicy("mtp"))
    assert compare_requests(running.request, wanted, running)[0].effect == "nothing"
    seen = as_asked(running, wanted)
    assert seen.plan is not None
    assert (seen.plan.spec.requested, seen.plan.spec.resolved) == ("mtp", "default")
    assert [note.code for note in seen.plan.spec.notes] == ["model_not_mtp"]
    assert seen.request == running.request
    assert speculation_json(seen)["asked"] == "mtp"


def test_what_was_found_out_of_a_process_outlives_another_policy() -> None:
    running = without_head("mtp")
    assert running.plan is not None
    spec = replace(running.plan.spec, reason=GAVE_UP, notes=(*running.plan.spec.notes, GAVE_UP))
    running = replace(running, plan=replace(running.plan, spec=spec))
    seen = as_asked(running, replace(running.request, spec=SpecPolicy("auto")))
    assert seen.plan is not None
    assert (seen.plan.spec.requested, seen.plan.spec.reason, seen.plan.spec.notes) == (
        "auto",
        GAVE_UP,
        (GAVE_UP,),
    )


def test_a_policy_that_comes_to_other_flags_is_not_told_of_what_runs() -> None:
    running = without_head("auto")
    assert as_asked(running, replace(running.request, spec=SpecPolicy("off"))) == running


async def test_a_running_model_says_what_the_manifest_asks_now(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    request = request_for(fake_engine(), tiny_gguf)
    rig.declare(request)
    before = await rig.until("m", State.READY)
    rig.declare(changed(request, spec=SpecPolicy("mtp")))
    seen = rig.instance("m")
    assert (seen.instance, speculation_json(seen)["asked"]) == (before.instance, "mtp")
    assert 'asked="mtp"' in metrics_text(rig.fleet.views())


async def test_slots_are_looked_at_once_more_after_a_short_request(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    await rig.until("m", State.READY)
    await eventually(lambda: rig.instance("m").slots, 20.0)
    lease = await rig.fleet.acquire("m", key=None)
    lease.release()
    released_s = time.monotonic()
    await eventually(lambda: rig.instance("m").slots[0].stale_s < time.monotonic() - released_s, 20.0)
