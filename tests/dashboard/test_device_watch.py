"""Listing devices starts a process, so looking must not do it each time (cases MD-01)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from framework.api.answers import DevicesAnswer
from framework.dashboard.device_watch import FRESH_FOR_S, DeviceWatch
from framework.telemetry.changes import Changes
from tests.dashboard.fake_system import DEVICES
from tests.dashboard.samples import NOW

NOTHING_RUNS: frozenset[str] = frozenset()


@dataclass
class Lister:
    """Lists devices when it is let; counts how often it was asked."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0
    passed_s: float = 0.0
    changes: Changes = field(default_factory=Changes)
    answer: DevicesAnswer = field(default_factory=DevicesAnswer)

    async def list(self) -> DevicesAnswer:
        self.asked += 1
        await self.gate.wait()
        self.answer = DevicesAnswer(DEVICES, sampled_at=NOW + timedelta(seconds=self.passed_s))
        return self.answer

    def watch(self) -> DeviceWatch:
        return DeviceWatch(
            self.list,
            lambda: self.answer,
            self.changes,
            now=lambda: NOW + timedelta(seconds=self.passed_s),
        )


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_look_does_not_wait() -> None:
    assert Lister().watch().look(NOTHING_RUNS).sampled_at is None


async def test_an_answer_is_shown_and_announced() -> None:
    lister = Lister()
    watch = lister.watch()
    watch.look(NOTHING_RUNS)
    lister.gate.set()
    await settle()
    assert watch.look(NOTHING_RUNS).devices == DEVICES
    assert lister.changes.version == 1


async def test_many_looks_ask_once() -> None:
    lister = Lister()
    watch = lister.watch()
    for _ in range(50):
        watch.look(NOTHING_RUNS, fresh=True)
    await settle()
    assert lister.asked == 1


async def test_what_somebody_else_had_listed_is_not_listed_again() -> None:
    lister = Lister(answer=DevicesAnswer(DEVICES, sampled_at=NOW))
    assert lister.watch().look(NOTHING_RUNS, fresh=True).devices == DEVICES
    await settle()
    assert lister.asked == 0


async def test_a_live_page_asks_only_when_something_else_runs() -> None:
    lister = Lister()
    lister.gate.set()
    watch = lister.watch()
    for running in (NOTHING_RUNS, NOTHING_RUNS, frozenset({"a.0@1"}), frozenset({"a.0@1"})):
        lister.passed_s += 3600
        watch.look(running)
        await settle()
    assert lister.asked == 2


async def test_a_change_while_a_list_is_under_way_is_not_forgotten() -> None:
    lister = Lister()
    watch = lister.watch()
    watch.look(NOTHING_RUNS)
    await settle()
    watch.look(frozenset({"a.0@1"}))
    lister.gate.set()
    await settle()
    watch.look(frozenset({"a.0@1"}))
    await settle()
    assert lister.asked == 2


async def test_a_page_load_asks_again_when_the_list_is_old() -> None:
    lister = Lister()
    lister.gate.set()
    watch = lister.watch()
    for passed_s in (0.0, FRESH_FOR_S / 2, FRESH_FOR_S):
        lister.passed_s += passed_s
        watch.look(NOTHING_RUNS, fresh=True)
        await settle()
    assert lister.asked == 2
