"""Requests of an earlier life keep an engine busy until they are done, and no longer (07 §8.7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

from framework.runtime.instance import Instance
from framework.runtime.launch import Running
from framework.runtime.left_work import UNKNOWN_FOR_S, LeftWork
from framework.runtime.process import EngineProcess
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.instance import Slot, State
from framework.values.request import ModelRequest, ModelSource

IDLE = Slot(0, "idle", 0, 512, 0, 0, 0, None, None, None, 0.0)


class Standing(EngineProcess):
    """A process that does nothing."""

    is_kept: ClassVar[bool] = True

    async def wait_output(self) -> None: ...

    async def close(self) -> None: ...


class World:
    """One instance that was taken over."""

    def __init__(self) -> None:
        request = ModelRequest(id="m", source=ModelSource(path=Path("/m.gguf")))
        self.instance = Instance(
            request, 0, 5, events=EventLog(Changes()), restarts=0, on_idle=lambda _: None
        )
        self.now_s = 0.0
        self.instance.running = Running(Standing(2**22 + 1), 40000, None)
        self.instance.move(State.READY, "taken over")
        self.work = LeftWork(clock=lambda: self.now_s)
        self.work.begin(self.instance)

    def sample(self, *states: tuple[Literal["idle", "processing_prompt", "generating"], int]) -> int:
        """The slots as they are now; how many leases are open after a look."""
        self.instance.slots = tuple(
            replace(IDLE, id=number, state=state, generated=generated)
            for number, (state, generated) in enumerate(states)
        )
        self.instance.sampled_s = self.now_s
        self.work.look()
        return len(self.instance.leases)


async def test_it_is_busy_until_the_slots_are_known() -> None:
    world = World()
    world.work.look()
    assert len(world.instance.leases) == 1
    assert world.sample(("idle", 0), ("idle", 0)) == 0


async def test_each_busy_slot_holds_it_until_that_is_idle() -> None:
    world = World()
    assert world.sample(("generating", 5), ("processing_prompt", 0), ("idle", 0)) == 2
    assert world.sample(("generating", 9), ("generating", 3), ("idle", 0)) == 2
    assert world.sample(("idle", 0), ("generating", 4), ("generating", 2)) == 1
    assert world.sample(("idle", 0), ("idle", 0), ("generating", 4)) == 0


async def test_another_request_in_the_same_slot_is_somebody_elses() -> None:
    world = World()
    assert world.sample(("generating", 50)) == 1
    assert world.sample(("processing_prompt", 0)) == 0


async def test_a_request_that_came_since_is_counted_once() -> None:
    world = World()
    ours = world.instance.lease()
    assert world.sample(("generating", 5), ("idle", 0)) == 1
    ours.release()
    assert not world.instance.leases


async def test_an_engine_that_never_says_is_free_after_a_while() -> None:
    world = World()
    world.now_s = UNKNOWN_FOR_S + 1
    world.work.look()
    assert not world.instance.leases


async def test_a_drain_whose_time_is_over_does_not_wait_for_it() -> None:
    world = World()
    assert world.sample(("generating", 5)) == 1
    world.instance.revoke("model_unloaded")
    world.work.look()
    assert await world.instance.wait_idle(1.0)


async def test_the_end_of_the_process_is_the_end_of_its_work() -> None:
    world = World()
    assert world.sample(("generating", 5)) == 1
    assert world.instance.running is not None
    world.instance.running.child.exited.set_result(None)
    await asyncio.sleep(0)
    world.work.look()
    assert not world.instance.leases
