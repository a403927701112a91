"""What is said of a model between its unload and its next start: never what was, beside what is asked."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.past import as_asked
from framework.values.instance import State
from framework.values.reason import Reason
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
