"""The event log: every decision, start, failure and command, newest last (07 §14, 13 §6).

Called by reconcile, runtime, app; read by the API, the dashboard and the commands. It keeps the last
events of each model in memory and hands new ones to subscribers; it decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from heapq import merge
from typing import Any

from framework.telemetry.changes import Changes
from framework.values.event import Event
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# 07 §14.1: enough to explain a night's trouble with one model, small enough to never matter in memory.
EVENTS_PER_MODEL = 1000
# A subscriber that is this far behind is not reading any more; it is told to come back with `since`.
SUBSCRIBER_BACKLOG = 500
WARNINGS = frozenset(
    {"degraded", "demoted", "crash_loop", "unkillable", "rolled_back", "replacement_failed"}
    | {"start_failed", "manifest_rejected", "refused", "exited"}
)
# On a terminal these drown what a person looks for; pages and `paddock events` show them all.
DETAILS = frozenset({"state", "attempt", "planned"})
PLANNED = "planned"
# A model is planned again at every start, and waits longer than a log should repeat itself.
REMEMBERED_WARNINGS = 64


def utc_now() -> datetime:
    """The wall clock, for `at` fields only; durations use a monotonic clock."""
    return datetime.now(UTC)


class EventLog:
    """Events in memory, bounded per model. All methods are called on one event loop."""

    def __init__(self, changes: Changes, *, now: Callable[[], datetime] = utc_now) -> None:
        self._changes = changes
        self._now = now
        self._next_id = 1
        self._by_model: dict[str | None, deque[Event]] = {}
        self._subscribers: set[asyncio.Queue[Event | None]] = set()
        self._warned: dict[str | None, deque[str]] = {}

    def record(
        self,
        kind: str,
        message: str,
        *,
        model: str | None = None,
        replica: int | None = None,
        reason: Reason | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Event:
        """Add an event, log it and hand it to subscribers. `message` must be redacted already."""
        event = Event(self._next_id, self._now(), kind, message, model, replica, reason, dict(data or {}))
        self._next_id += 1
        self._by_model.setdefault(model, deque(maxlen=EVENTS_PER_MODEL)).append(event)
        code = f" [{reason.code}]" if reason is not None else ""
        log.log(self._level(event), "%s%s: %s%s", f"{model}: " if model else "", kind, message, code)
        for queue in tuple(self._subscribers):
            _offer(queue, event)
        self._changes.mark()
        return event

    def touch(self) -> None:
        """Something visible changed that is no event, such as a lease given back."""
        self._changes.mark()

    def recent(
        self,
        *,
        model: str | None = None,
        kind: str | None = None,
        since: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Event]:
        """The newest `limit` events with ids above `since` and below `before`, oldest first.

        Walks from the newest end, so that a page that asks for ten pays for ten.
        """
        logs = self._by_model.values() if model is None else [self._by_model.get(model, deque())]
        found: list[Event] = []
        for event in merge(*(reversed(events) for events in logs), key=lambda event: -event.id):
            if event.id <= since or len(found) >= limit:
                break
            if (before is None or event.id < before) and kind in (None, event.kind):
                found.append(event)
        return found[::-1]

    def _level(self, event: Event) -> int:
        """What a plan does not grant is logged the first time that it is said of the model."""
        is_granted = event.reason is None or event.reason.severity == "info"
        if event.kind != PLANNED or is_granted:
            return _level(event)
        told = self._warned.setdefault(event.model, deque(maxlen=REMEMBERED_WARNINGS))
        if event.message in told:
            return logging.DEBUG
        told.append(event.message)
        return max(_level(event), logging.WARNING)

    def close(self) -> None:
        """End all subscriptions: the manager ends."""
        for queue in tuple(self._subscribers):
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait(None)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Event]]:
        """New events as they come. The iterator ends when the reader has fallen too far behind."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(SUBSCRIBER_BACKLOG)
        self._subscribers.add(queue)
        try:
            yield _drain(queue)
        finally:
            self._subscribers.discard(queue)


def _level(event: Event) -> int:
    if event.reason is not None and event.reason.severity == "error":
        return logging.ERROR
    if event.kind in WARNINGS or (event.kind == "health" and event.reason is not None):
        return logging.WARNING
    return logging.DEBUG if event.kind in DETAILS else logging.INFO


def _offer(queue: asyncio.Queue[Event | None], event: Event) -> None:
    if queue.full():
        return
    if queue.qsize() == SUBSCRIBER_BACKLOG - 1:
        queue.put_nowait(None)
    else:
        queue.put_nowait(event)


async def _drain(queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
    while (event := await queue.get()) is not None:
        yield event
