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
PLAIN = {"predicted_n": 64, "predicted_ms": 640.0}
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


async def started(rig: FleetRig, request: ModelRequest) -> None:
    """The model as it is asked for, ready, after a first instance told how fast it is without drafting."""
    rig.declare(changed(request, spec=SpecPolicy("off")))
    await all_ready(rig, 1)
    for _ in range(SOON.min_requests):
        await answer(rig, PLAIN)
    rig.declare(request)
    await all_ready(rig, 2)


async def lose(rig: FleetRig) -> None:
    """Answers that show drafting to be ten times slower than plain decoding."""
    for _ in range(SOON.min_requests):
        await answer(rig, SLOW_DRAFTS)


async def until(rig: FleetRig, holds: Callable[[InstanceView], bool]) -> InstanceView:
    """Wait until the instance is so."""
    async with asyncio.timeout(WAIT_S):
        while not holds(view := rig.instance("m")):
            await asyncio.sleep(0.05)
    return view


def ready(generation: int) -> Callable[[InstanceView], bool]:
    """Whether it is this instance, and ready."""
    return lambda view: (view.generation, view.state) == (generation, State.READY)


def replicas(rig: FleetRig) -> list[InstanceView]:
    """The instance of each replica; of one that is being replaced, the newer one."""
    view = rig.fleet.view("m")
    assert view is not None
    return list({instance.replica: instance for instance in view.instances}.values())


async def all_ready(rig: FleetRig, generation: int) -> None:
    """Wait until all replicas serve."""
    async with asyncio.timeout(WAIT_S):
        while not all(map(ready(generation), replicas(rig))):
            await asyncio.sleep(0.02)


def drafts(start: dict[str, Any]) -> bool:
    """Whether a start had a type of speculation on its line."""
    return "--spec-type" in start["argv"]


async def test_drafting_that_loses_is_switched_off_with_its_reason(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    view = await until(rig, ready(3))
    assert [drafts(start) for start in engine.starts()] == [False, True, False]
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
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    await until(rig, ready(3))
    event = rig.event("demoted")
    assert event.reason is not None
    assert (event.reason.code, event.data["from"]) == ("speculation_unprofitable", "ngram-mod")


async def test_no_answer_is_cut_for_it(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    busy: Lease = await rig.fleet.acquire("m")
    await judged(rig)
    await asyncio.sleep(1.5)
    assert rig.instance("m").generation == 2
    assert not busy.revoked.done()
    busy.release()
    await until(rig, ready(3))


async def judged(rig: FleetRig) -> None:
    """Wait until a loss was judged."""
    async with asyncio.timeout(WAIT_S):
        while "demoted" not in rig.kinds("m"):
            await asyncio.sleep(0.05)


async def test_a_report_changes_nothing(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf, yield_watch="report"))
    await lose(rig)
    await asyncio.sleep(1.5)
    view = rig.fleet.view("m")
    assert view is not None
    assert view.spec_yield.verdict is not None
    assert (rig.instance("m").generation, "demoted" in rig.kinds("m")) == (2, False)


async def test_drafting_that_wins_goes_on(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    for _ in range(SOON.min_requests):
        await answer(rig, FAST_DRAFTS)
    await asyncio.sleep(1.5)
    view = rig.fleet.view("m")
    assert view is not None
    assert [speed.speedup for speed in view.speeds] == [pytest.approx(10.0)]
    assert view.spec_yield.verdict is None
    assert rig.instance("m").generation == 2


async def test_it_is_tried_again_later(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = WatchLimits(min_requests=3, loses_for_s=0.0, quiet_s=0.0, again_after_s=3.0)
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    await until(rig, ready(4))
    assert [drafts(start) for start in engine.starts()] == [False, True, False, True]
    view = rig.fleet.view("m")
    assert view is not None
    assert view.spec_yield.verdict is None, "what was measured before the verdict is no proof any more"


async def test_saying_that_it_does_not_matter_brings_drafting_back(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    await until(rig, ready(3))
    rig.declare(ngrams(engine, tiny_gguf, yield_watch="off"))
    await until(rig, ready(4))
    assert [drafts(start) for start in engine.starts()] == [False, True, False, True]


async def test_a_reload_brings_drafting_back(rig: FleetRig, engine: FakeEngine, tiny_gguf: Path) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    await until(rig, ready(3))
    rig.fleet.reload("m", by="test")
    await until(rig, ready(4))
    assert [drafts(start) for start in engine.starts()] == [False, True, False, True]


async def test_an_edit_of_something_else_leaves_it_switched_off(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    request = ngrams(engine, tiny_gguf)
    await started(rig, request)
    await lose(rig)
    await until(rig, ready(3))
    rig.declare(changed(request, slots=1))
    await until(rig, ready(4))
    assert [drafts(start) for start in engine.starts()] == [False, True, False, False]


async def test_a_second_crash_while_drafting_goes_on_without(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.declare(request_for(engine, tiny_gguf, spec=SpecPolicy("draft", drafter=ModelSource(path=tiny_gguf))))
    first = await rig.until("m", State.READY)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSEGV)
    again = await until(rig, ready(2))
    assert again.pid is not None
    os.kill(again.pid, signal.SIGSEGV)
    view = await until(rig, ready(3))
    assert [drafts(start) for start in engine.starts()] == [True, True, False]
    assert view.plan is not None
    assert view.plan.spec.reason is not None
    assert (view.plan.spec.requested, view.plan.spec.reason.code) == ("draft", "runtime_error")
    assert rig.event("demoted").data["from"] == "draft-simple"


async def test_replicas_are_restarted_one_after_the_other(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    engine = fake_engine(load_s=1.0)
    await started(rig, ngrams(engine, tiny_gguf, replicas=2))
    await lose(rig)
    fewest = 2
    async with asyncio.timeout(WAIT_S):
        while [i.generation for i in replicas(rig)] != [3, 3]:
            fewest = min(fewest, sum(i.state is State.READY for i in replicas(rig)))
            await asyncio.sleep(0.01)
    assert fewest == 1
    await all_ready(rig, 3)
    assert [drafts(start) for start in engine.starts()] == [False, False, True, True, False, False]


async def test_a_restart_that_is_refused_is_not_tried_all_the_time(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = SOON
    await started(rig, ngrams(engine, tiny_gguf))
    tiny_gguf.rename(tiny_gguf.with_suffix(".away"))
    await lose(rig)
    await asyncio.sleep(3.0)
    assert rig.kinds("m").count("replacement_failed") == 1
    assert rig.kinds("m").count("demoted") == 1
    assert rig.instance("m").state is State.READY


async def test_a_verdict_is_seen_until_it_is_carried_out(
    rig: FleetRig, engine: FakeEngine, tiny_gguf: Path
) -> None:
    rig.shop.watch_limits = WatchLimits(min_requests=3, loses_for_s=0.0, quiet_s=60.0)
    await started(rig, ngrams(engine, tiny_gguf))
    await lose(rig)
    await judged(rig)
    await asyncio.sleep(1.5)
    view = rig.fleet.view("m")
    assert view is not None
    assert view.spec_yield.verdict is not None
    assert rig.kinds("m").count("demoted") == 1
