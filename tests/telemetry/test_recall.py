"""The event log over memory and store: whatever is asked, the answer is as if all were in one list."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from framework.telemetry import events as module
from framework.telemetry.changes import Changes
from framework.telemetry.events import EVENTS_PER_MODEL, OUTCOMES, EventLog
from framework.values.event import Event
from framework.values.reason import Reason
from tests.telemetry.samples import Life, life

MODELS = ("loud", "quiet", None)
KINDS = ("state", "ready", "exited")
REASONS = (None, Reason("a", "Good to know.", "", "info"), Reason("b", "Not as asked.", "Ask.", "warning"))


def fill(log: EventLog, number: int, seed: int) -> list[Event]:
    """Events of three models, most of them of one."""
    draw = random.Random(seed)
    return [
        log.record(
            draw.choice(KINDS),
            f"event {n}",
            model=draw.choices(MODELS, (9, 1, 1))[0],
            reason=draw.choices(REASONS, (8, 1, 1))[0],
        )
        for n in range(number)
    ]


def log_of(one: Life) -> EventLog:
    return EventLog(Changes(), store=one.store, earlier=one.earlier)


def tells(event: Event) -> bool:
    """Whether it says more than that a start takes its course."""
    return event.kind != "state" or (event.reason is not None and event.reason.severity == "warning")


def expected(events: list[Event], query: dict[str, Any]) -> list[int]:
    """The plain answer."""
    found = [
        event.id
        for event in events
        if query.get("model") in (None, event.model)
        and (query.get("kind") in (None, event.kind) or (query["kind"] == OUTCOMES and tells(event)))
        and query.get("since", 0) < event.id < query.get("before", 10**9)
    ]
    return found[-query.get("limit", 100) :]


QUERIES: list[dict[str, Any]] = [
    {},
    {"limit": 1000},
    {"limit": 1},
    {"before": 300, "limit": 50},
    {"before": 1},
    {"since": 40, "limit": 1000},
    {"since": 2_000_000},
    {"kind": "exited", "limit": 1000},
    {"kind": "exited", "limit": 5},
    {"model": "quiet", "limit": 1000},
    {"model": "quiet", "kind": "ready"},
    {"model": "loud", "kind": "ready", "limit": 1000},
    {"model": "loud", "before": 900, "limit": 20},
    {"model": "gone"},
    {"kind": OUTCOMES, "limit": 1000},
    {"kind": OUTCOMES, "model": "loud", "before": 900, "limit": 20},
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
async def test_memory_and_store_answer_together(tmp_path: Path, query: dict[str, Any]) -> None:
    with life(tmp_path) as first:
        events = fill(log_of(first), 700, seed=1)
    with life(tmp_path) as second:
        log = log_of(second)
        events += fill(log, 2000, seed=2)
        second.written(events[-1].id)
        found = await log.recall(**query)
    assert [event.id for event in found] == expected(events, query)
    assert len({event.id for event in events}) == 2700


async def test_what_is_not_written_yet_is_found_all_the_same(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        events = fill(log_of(first), 1500, seed=3)
    second = Life(tmp_path)
    second.store.close()
    log = log_of(second)
    events += fill(log, 5, seed=4)
    assert [event.id for event in await log.recall(limit=1000)] == expected(events, {"limit": 1000})


async def test_a_store_that_cannot_be_read_leaves_what_is_in_memory(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = log_of(one)
        events = fill(log, 1500, seed=5)
        one.written(events[-1].id)
        one.path.unlink()
        found = await log.recall(model="loud", limit=1000)
    loud = [event.id for event in events if event.model == "loud"]
    assert [event.id for event in found] == loud[-EVENTS_PER_MODEL:]


async def test_without_a_store_there_is_memory_alone() -> None:
    log = EventLog(Changes())
    events = fill(log, 10, seed=6)
    assert await log.recall() == events
    assert log.storage_fault is None


async def test_models_that_come_and_go_are_remembered_by_the_store_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_MODELS", 10)
    with life(tmp_path) as one:
        log = log_of(one)
        server = log.record("manager", "started")
        events = [log.record("ready", f"event {n}", model=f"model {n % 40}") for n in range(200)]
        one.written(events[-1].id)
        assert len(log._by_model) == 10
        assert [event.id for event in await log.recall(model="model 3")] == expected(
            events, {"model": "model 3"}
        )
        everything = [event.id for event in (server, *events)]
        assert [event.id for event in await log.recall(limit=1000)] == everything
        assert log.recent(kind="manager") == [server]
