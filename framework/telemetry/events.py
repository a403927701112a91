"""The event log: every decision, start, failure and command, newest last (07 §14, 13 §6).

Called by reconcile, runtime, app; read by the API, the dashboard and the commands. It keeps the last
events of each model in memory, hands new ones to subscribers and to the store, and asks the store for what is
not in memory any more. It decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from typing import Any, Literal, Protocol

from framework.telemetry.changes import Changes
from framework.values.event import Event
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# 07 §14.1: enough to explain a night's trouble with one model, small enough to never matter in memory.
EVENTS_PER_MODEL = 1000
# Models come and go. Of those that said nothing for longest the store knows all that is to be known.
MOST_MODELS = 2000
# A subscriber that is this far behind is not reading any more; it is told to come back with `since`.
SUBSCRIBER_BACKLOG = 500
WARNINGS = frozenset(
    {"degraded", "demoted", "crash_loop", "unkillable", "rolled_back", "replacement_failed"}
    | {"start_failed", "manifest_rejected", "refused", "exited"}
)
# On a terminal and the overview these drown what a person looks for; `paddock events` and Events show them.
DETAILS = frozenset({"state", "attempt", "planned"})
PLANNED = "planned"
OUTCOMES = "outcomes"
"""In place of a kind: all events but steps of starts and stops where nothing went otherwise than asked."""
STORAGE = "storage"
# Trouble and its end have one kind; the first has a reason.
OF_BOTH_KINDS = frozenset({"health", STORAGE})
# A model is planned again at every start, and waits longer than a log should repeat itself.
REMEMBERED_WARNINGS = 64


@dataclass(frozen=True)
class Earlier:
    """What earlier lives of the manager left: the newest events in the order of their ids, and the id that
    the next one gets. Every stored event with an id above `complete_above` is among them."""

    events: tuple[Event, ...] = ()
    next_id: int = 1
    complete_above: int = 0
    ended: Literal["in order", "killed"] | None = None
    """How the life before ended; None where there was none, or nothing is known of it."""


class EventStore(Protocol):
    """Where events outlive the manager. Implemented by telemetry.store."""

    @property
    def trouble(self) -> Reason | None:
        """Why nothing can be written now; None while all is well."""

    def keep_event(self, event: Event) -> None:
        """Write it soon. Never waits, never fails."""

    def find_events(
        self, *, model: str | None, kind: str | None, since: int, before: int | None, limit: int
    ) -> list[Event]:
        """As `EventLog.recent`, of what was written. Blocking; never fails."""


def utc_now() -> datetime:
    """The wall clock, for `at` fields only; durations use a monotonic clock."""
    return datetime.now(UTC)


class EventLog:
    """Events in memory, bounded per model. All methods are called on one event loop."""

    def __init__(
        self,
        changes: Changes,
        *,
        now: Callable[[], datetime] = utc_now,
        store: EventStore | None = None,
        earlier: Earlier = Earlier(),
        observe: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._changes = changes
        self._now = now
        self._store = store
        self._observe = observe
        self._reading = asyncio.Lock()
        self._next_id = earlier.next_id
        self._complete_above = earlier.complete_above
        self._dropped: dict[str | None, int] = {}
        self._by_model: dict[str | None, deque[Event]] = {}
        for event in earlier.events:
            self._remember(event)
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
        self._remember(event)
        self._observe(event)
        if self._store is not None:
            self._store.keep_event(event)
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
        """The newest `limit` events with ids above `since` and below `before`, oldest first; `kind` may be
        `OUTCOMES`.

        Walks from the newest end, so that a page that asks for ten pays for ten.
        """
        logs = self._by_model.values() if model is None else [self._by_model.get(model, deque())]
        found: list[Event] = []
        for event in merge(*(reversed(events) for events in logs), key=lambda event: -event.id):
            if event.id <= since or len(found) >= limit:
                break
            if (before is None or event.id < before) and is_of_kind(event, kind):
                found.append(event)
        return found[::-1]

    async def recall(
        self,
        *,
        model: str | None = None,
        kind: str | None = None,
        since: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Event]:
        """As `recent`, over all events that the store holds; asks it only where memory cannot know."""
        found = self.recent(model=model, kind=kind, since=since, before=before, limit=limit)
        floor = self._floor(model)
        if self._store is None or since >= floor or (len(found) >= limit and found[0].id > floor):
            return found
        # One at a time: a slow disk must not take all threads that others need.
        async with self._reading:
            stored = await asyncio.to_thread(
                self._store.find_events, model=model, kind=kind, since=since, before=before, limit=limit
            )
        return newest(limit, stored, found)

    @property
    def storage_fault(self) -> Reason | None:
        """Why events are only in memory now; None while they are stored, or are not meant to be."""
        return self._store.trouble if self._store is not None else None

    @property
    def newest_id(self) -> int:
        """The highest id given so far, in this life or an earlier one; 0 before the first."""
        return self._next_id - 1

    def _remember(self, event: Event) -> None:
        # The last one to have said something stands last.
        events = self._by_model.pop(event.model, None) or deque(maxlen=EVENTS_PER_MODEL)
        self._by_model[event.model] = events
        if len(events) == EVENTS_PER_MODEL:
            self._dropped[event.model] = events[0].id
        events.append(event)
        if len(self._by_model) > MOST_MODELS:
            self._forget(next(model for model in self._by_model if model is not None))

    def _forget(self, model: str) -> None:
        self._complete_above = max(self._complete_above, self._by_model.pop(model)[-1].id)
        self._dropped.pop(model, None)
        self._warned.pop(model, None)

    def _floor(self, model: str | None) -> int:
        """Every event of a model, or of all, with an id above this one is in memory."""
        if model is not None:
            return max(self._complete_above, self._dropped.get(model, 0))
        return max(self._complete_above, *self._dropped.values(), 0)

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


def newest(limit: int, *sources: Sequence[Event]) -> list[Event]:
    """The newest `limit` events of several lists, oldest first; one that is in several counts once."""
    by_id = {event.id: event for events in sources for event in events}
    return [by_id[number] for number in sorted(by_id)[-limit:]]


def is_detail(event: Event) -> bool:
    """Whether it is a step of a start or a stop, and nothing went otherwise than asked."""
    return event.kind in DETAILS and (event.reason is None or event.reason.severity == "info")


def is_of_kind(event: Event, kind: str | None) -> bool:
    """Whether it is of a kind; None is any, and `OUTCOMES` all that is no detail."""
    return not is_detail(event) if kind == OUTCOMES else kind in (None, event.kind)


def _level(event: Event) -> int:
    if event.reason is not None and event.reason.severity == "error":
        return logging.ERROR
    if event.kind in WARNINGS or (event.kind in OF_BOTH_KINDS and event.reason is not None):
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
