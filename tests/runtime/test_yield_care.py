"""Drafting that does not pay ends at a quiet moment, and is tried again (05 §11.7); so does one that crashes.

Times of answers come from a scripted engine: how fast a real one is depends on the machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.planning.speculation.profit import WatchLimits
from framework.runtime.lease import Lease
from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.fakes import FakeEngine

SOON = WatchLimits(min_requests=3, loses_for_s=0.0, quiet_s=0.0)
SLOW_DRAFTS = {"predicted_n": 64, "predicted_ms": 6400.0, "draft_n": 480, "draft_n_accepted": 2}
UNDRAFTED = {"predicted_n": 64, "predicted_ms": 640.0}
FAST_DRAFTS = {"predicted_n": 64, "predicted_ms": 64.0, "draft_n": 64, "draft_n_accepted": 64}
WAIT_S = 30.0


@pytest.fixture
def engine(fake_engine: MakeFake) -> FakeEngine:
    """A healthy one that takes a drafter."""
    return fake_engine()


def ngrams(engine: FakeEngine, model: Path, **live: Any) -> ModelRequest:
    """A model with an n-gram policy."""
    return request_for(engine, model, spec=SpecPolicy("ngram"), live=live)


async def answer(rig: FleetRig, timings: dict[str, Any]) -> None:
    """One answer with these times."""
    lease = await rig.fleet.acquire("m")
    lease.timings = timings
    lease.release()


async def lose(rig: FleetRig) -> None:
    """Answers that show drafting to be ten times slower than plain decoding."""
    for _ in range(SOON.min_requests):
        await answer(rig, UNDRAFTED)
    for _ in range(SOON.min_requests):
        await answer(rig, SLOW_DRAFTS)


async def until(rig: FleetRig, holds: Callable[[InstanceView], bool]) -> InstanceView:
    """Wait until the instance is so."""
    async with asyncio.timeout(WAIT_S):
        while not holds(view := rig.instance("m")):
            await asyncio.sleep(0.05)
    return view


def second(view: InstanceView) -> bool:
    """Whether it is the second instance, and ready."""
    return view.generation == 2 and view.state is State.READY


def drafts(start: dict[str, Any]) -> bool:
    """Whether a start had a type of speculation on its line."""
    return "--spec-type" in start["argv"]


async def test_drafting_that_loses_is_switched_off_with_its_reason(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    await lose(rig)
    view = await until(rig, second)
    assert [drafts(start) for start in engine.starts()] == [True, False]
    assert view.plan is not None
    assert (view.plan.spec.requested, view.plan.spec.resolved) == ("ngram", "none")
    reason = view.plan.spec.reason
    assert reason is not None
    assert reason.code == "speculation_unprofitable"
    assert "10.0 tokens/s for each request against 100.0, 0.10 times, with 1 busy slot" in reason.message
    assert view.running is not None
    assert view.running.speculation == "none"


async def test_it_is_told_as_an_event(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    await lose(rig)
    await until(rig, second)
    event = rig.event("demoted")
    assert event.reason is not None
    assert (event.reason.code, event.data["from"]) == ("speculation_unprofitable", "ngram-mod")


async def test_no_answer_is_cut_for_it(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    busy: Lease = await rig.fleet.acquire("m")
    await lose_beside(rig)
    await asyncio.sleep(1.5)
    assert rig.instance("m").generation == 1
    assert not busy.revoked.done()
    busy.release()
    await until(rig, second)


async def lose_beside(rig: FleetRig) -> None:
    """As `lose`, and wait until the loss was judged."""
    await lose(rig)
    async with asyncio.timeout(WAIT_S):
        while "demoted" not in rig.kinds("m"):
            await asyncio.sleep(0.05)


async def test_a_report_changes_nothing(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf, yield_watch="report"))
    await rig.until("m", State.READY)
    await lose(rig)
    await asyncio.sleep(1.5)
    view = rig.fleet.view("m")
    assert view is not None
    assert view.spec_yield.verdict is not None
    assert (rig.instance("m").generation, "demoted" in rig.kinds("m")) == (1, False)


async def test_drafting_that_wins_goes_on(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    for timings in (UNDRAFTED, FAST_DRAFTS):
        for _ in range(SOON.min_requests):
            await answer(rig, timings)
    await asyncio.sleep(1.5)
    view = rig.fleet.view("m")
    assert view is not None
    assert [speed.speedup for speed in view.speeds] == [pytest.approx(10.0)]
    assert view.spec_yield.verdict is None
    assert rig.instance("m").generation == 1


async def test_it_is_tried_again_later(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = WatchLimits(min_requests=3, loses_for_s=0.0, quiet_s=0.0, again_after_s=3.0)
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    await lose(rig)
    await until(rig, lambda view: view.generation == 3 and view.state is State.READY)
    assert [drafts(start) for start in engine.starts()] == [True, False, True]
    view = rig.fleet.view("m")
    assert view is not None
    assert view.spec_yield.verdict is None, "what was measured before the verdict is no proof any more"


async def test_saying_that_it_does_not_matter_brings_drafting_back(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    await lose(rig)
    await until(rig, second)
    rig.declare(ngrams(engine, tiny_gguf, yield_watch="off"))
    await until(rig, lambda view: view.generation == 3 and view.state is State.READY)
    assert [drafts(start) for start in engine.starts()] == [True, False, True]


async def test_a_reload_brings_drafting_back(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    rig.declare(ngrams(engine, tiny_gguf))
    await rig.until("m", State.READY)
    await lose(rig)
    await until(rig, second)
    rig.fleet.reload("m", by="test")
    await until(rig, lambda view: view.generation == 3 and view.state is State.READY)
    assert [drafts(start) for start in engine.starts()] == [True, False, True]


async def test_an_edit_of_something_else_leaves_it_switched_off(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    request = ngrams(engine, tiny_gguf)
    rig.declare(request)
    await rig.until("m", State.READY)
    await lose(rig)
    await until(rig, second)
    rig.declare(changed(request, slots=1))
    await until(rig, lambda view: view.generation == 3 and view.state is State.READY)
    assert [drafts(start) for start in engine.starts()] == [True, False, False]


async def test_a_second_crash_while_drafting_goes_on_without(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.declare(request_for(engine, tiny_gguf, spec=SpecPolicy("draft", drafter=ModelSource(path=tiny_gguf))))
    first = await rig.until("m", State.READY)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSEGV)
    again = await until(rig, second)
    assert again.pid is not None
    os.kill(again.pid, signal.SIGSEGV)
    view = await until(rig, lambda view: view.generation == 3 and view.state is State.READY)
    assert [drafts(start) for start in engine.starts()] == [True, True, False]
    assert view.plan is not None
    assert view.plan.spec.reason is not None
    assert (view.plan.spec.requested, view.plan.spec.reason.code) == ("draft", "runtime_error")
    assert rig.event("demoted").data["from"] == "draft-simple"
