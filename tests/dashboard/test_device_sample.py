"""Listing devices starts a process, so looking must not do it each time (cases MD-01)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from framework.api.answers import DevicesAnswer
from framework.dashboard.device_sample import FRESH_FOR_S, DeviceSample
from framework.telemetry.changes import Changes
from tests.dashboard.fake_system import DEVICES
from tests.dashboard.samples import NOW

NOTHING_RUNS: frozenset[str] = frozenset()


@dataclass
class Lister:
    """Lists devices when it is let; counts how often it was asked."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0
    broken: bool = False
    now_s: float = 1000.0
    changes: Changes = field(default_factory=Changes)

    async def list(self) -> DevicesAnswer:
        self.asked += 1
        await self.gate.wait()
        if self.broken:
            raise OSError("no such driver")
        return DevicesAnswer(DEVICES)

    def sample(self) -> DeviceSample:
        return DeviceSample(self.list, self.changes, now=lambda: NOW, monotonic_s=lambda: self.now_s)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_look_does_not_wait() -> None:
    lister = Lister()
    assert lister.sample().look(NOTHING_RUNS).listed_at is None


async def test_an_answer_is_shown_and_announced() -> None:
    lister = Lister()
    sample = lister.sample()
    sample.look(NOTHING_RUNS)
    lister.gate.set()
    await settle()
    assert [row.name for row in sample.look(NOTHING_RUNS).rows] == ["CUDA0", "CPU"]
    assert lister.changes.version == 1


async def test_many_looks_ask_once() -> None:
    lister = Lister()
    sample = lister.sample()
    for _ in range(50):
        sample.look(NOTHING_RUNS, fresh=True)
    await settle()
    assert lister.asked == 1


async def test_a_live_page_asks_only_when_something_else_runs() -> None:
    lister = Lister()
    lister.gate.set()
    sample = lister.sample()
    for running in (NOTHING_RUNS, NOTHING_RUNS, frozenset({"a.0@1"}), frozenset({"a.0@1"})):
        lister.now_s += 3600
        sample.look(running)
        await settle()
    assert lister.asked == 2


async def test_a_page_load_asks_again_when_the_list_is_old() -> None:
    lister = Lister()
    lister.gate.set()
    sample = lister.sample()
    for passed_s in (0.0, FRESH_FOR_S / 2, FRESH_FOR_S):
        lister.now_s += passed_s
        sample.look(NOTHING_RUNS, fresh=True)
        await settle()
    assert lister.asked == 2


async def test_a_failure_to_list_is_a_reason_and_no_error() -> None:
    lister = Lister(broken=True)
    lister.gate.set()
    sample = lister.sample()
    sample.look(NOTHING_RUNS)
    await settle()
    assert [reason.code for reason in sample.look(NOTHING_RUNS).reasons] == ["devices_unknown"]
