"""The store of events and finished requests: one SQLite file, one thread that writes (07 §14.1).

Made and closed by app. The event loop only puts entries into bounded queues; a thread writes what came
together in one transaction, so that what happened half a second ago survives a kill of the manager. When the
file cannot be written, one piece of news says so, entries wait within their bound, and writing is tried
again; nothing else of the manager notices. Readers open connections of their own.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from framework.telemetry import tables
from framework.telemetry.events import Earlier
from framework.telemetry.pending import Pending
from framework.telemetry.rows import EventRow, event_row, request_row
from framework.telemetry.store_file import BUSY_S, Unfit, is_damage, open_file, open_to_read, set_aside
from framework.telemetry.tables import DEFAULT_BOUNDS, Bounds, KeptRequest
from framework.values.event import Event
from framework.values.reason import Reason
from framework.values.request_record import TEXTS_LIMIT_BYTES, RequestRecord

log = logging.getLogger(__name__)

T = TypeVar("T")
# A start makes a dozen events within milliseconds: they are one transaction.
GATHER_S = 0.25
RETRY_S = 10.0
# A disk that hangs must not hold up the end of the manager.
CLOSE_S = 5.0
# A query walks over 100,000 rows at most.
QUERY_S = 5.0
STEPS_BETWEEN_LOOKS = 100_000
MOST_WAITING = 10_000
MOST_WAITING_BYTES = 16 * 2**20
BATCH = 500
BATCH_BYTES = 2**20
ENTRY_BYTES = 1024
MILLISECONDS = 1000
FAULTS = (sqlite3.Error, OSError, Unfit)


@dataclass(frozen=True)
class News:
    """Something that a person should know of the store; without a reason it is good news."""

    message: str
    reason: Reason | None = None


@dataclass(frozen=True)
class Pace:
    """Times of the writer in seconds."""

    gather_s: float = GATHER_S
    retry_s: float = RETRY_S
    busy_s: float = BUSY_S


class Store:
    """Keeps what it is given. `shown` turns an event into its JSON, redacted (13 §6)."""

    def __init__(
        self,
        path: Path,
        shown: Callable[[Event], Mapping[str, Any]],
        *,
        bounds: Bounds = DEFAULT_BOUNDS,
        pace: Pace = Pace(),
    ) -> None:
        self.path = path
        self.trouble: Reason | None = None
        """Why nothing can be written now; None while all is well."""
        self._shown = shown
        self._bounds = bounds
        self._pace = pace
        self._work = threading.Condition()
        # Who reads one file must not meet the companions of another.
        self._in_place = threading.Lock()
        self._events: Pending[Event] = Pending(MOST_WAITING, MOST_WAITING_BYTES, lambda _: ENTRY_BYTES)
        self._requests: Pending[RequestRecord] = Pending(MOST_WAITING, MOST_WAITING_BYTES, _bytes_of)
        self._erase = False
        self._is_damaged = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._news: list[News] = []
        self._tell: Callable[[News], None] = self._news.append
        # Of the thread that writes, and before it begins of whoever opens:
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._last_id = 0

    # On the event loop

    def open(self) -> Earlier:
        """What earlier lives left. Before the event loop runs: blocking. Never fails."""
        existed = os.path.lexists(self.path)
        earlier = None
        try:
            earlier = tables.earlier(self._connect())
        except FAULTS as error:
            self._failed(error)
        if existed and (earlier is None or self._news):
            # Ids must not come again, and those of before are unknown: time has gone further than they have.
            earlier = Earlier(next_id=_milliseconds())
        earlier = earlier or Earlier()
        self._last_id = earlier.next_id - 1
        return earlier

    def start(self, tell: Callable[[News], None]) -> None:
        """Begin to write. `tell` is called in the thread that writes, first with what `open` found."""
        waiting, self._tell = self._news, tell
        for news in waiting:
            tell(news)
        self._thread = threading.Thread(target=self._run, name="paddock-store", daemon=True)
        self._thread.start()

    def keep_event(self, event: Event) -> None:
        """Write an event soon. Never waits, never fails."""
        self._put(self._events, event)

    def keep_request(self, record: RequestRecord) -> None:
        """Write a finished request soon. Never waits, never fails."""
        self._put(self._requests, record)

    def erase_texts(self) -> None:
        """Erase the texts of all requests so far soon, those that wait included."""
        with self._work:
            self._requests.put_back([_without_texts(one) for one in self._requests.take_all()])
            self._erase = True
            self._work.notify()

    def close(self) -> None:
        """Write what waits and end. Blocking, for CLOSE_S at most."""
        with self._work:
            self._closing = True
            self._work.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    # In worker threads

    def find_events(
        self, *, model: str | None, kind: str | None, since: int, before: int | None, limit: int
    ) -> list[Event]:
        """The newest `limit` written events that pass, oldest first; none where they cannot be read."""

        def find(connection: sqlite3.Connection) -> list[Event]:
            return tables.find_events(
                connection, model=model, kind=kind, since=since, before=before, limit=limit
            )

        return self._read(find, [])

    def find_requests(self, **query: Any) -> list[KeptRequest]:
        """As `tables.find_requests`; none where they cannot be read."""
        return self._read(lambda connection: tables.find_requests(connection, **query), [])

    def _read(self, find: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            with self._in_place, open_to_read(self.path) as connection:
                give_up_at = time.monotonic() + QUERY_S
                connection.set_progress_handler(lambda: time.monotonic() > give_up_at, STEPS_BETWEEN_LOOKS)
                return find(connection)
        except sqlite3.Error as error:
            log.log(logging.INFO if self.trouble else logging.WARNING, "cannot read %s: %s", self.path, error)
            if is_damage(error):
                with self._work:
                    self._is_damaged = True
                    self._work.notify()
            return otherwise

    # In the thread that writes

    def _run(self) -> None:
        while self._wait():
            while self._has_work and not self._closing:
                if not self._write():
                    self._pause(self._pace.retry_s)
        while self._has_work and self._write():
            pass
        self._end()

    def _wait(self) -> bool:
        """Until there is work and a moment has passed, for more to come; False at the end."""
        with self._work:
            self._work.wait_for(lambda: self._closing or self._has_work)
        self._pause(self._pace.gather_s)
        return not self._closing

    def _pause(self, seconds: float) -> None:
        with self._work:
            self._work.wait_for(lambda: self._closing, seconds)

    @property
    def _has_work(self) -> bool:
        return bool(self._events) or bool(self._requests) or self._erase or self._is_damaged

    def _write(self) -> bool:
        """Write one batch, or all commands that wait; whether that worked."""
        with self._work:
            events = self._events.take(BATCH, BATCH_BYTES)
            requests = self._requests.take(BATCH, BATCH_BYTES)
            erase, self._erase = self._erase, False
            damaged, self._is_damaged = self._is_damaged, False
        try:
            if damaged:
                self._put_aside("is damaged (found by a reader)")
            # Not left for later because somebody reads: what happens is written all the same.
            erase = erase and not tables.erase_texts(self._connect())
            self._commit(events, requests)
        except FAULTS as error:
            with self._work:
                self._events.put_back(events)
                # Told to erase texts meanwhile: these are older than that.
                self._requests.put_back(map(_without_texts, requests) if self._erase else requests)
                self._erase = self._erase or erase
            if is_damage(error):
                return self._mend(error)
            self._failed(error)
            return False
        except Exception:
            # A fault of ours, in what these entries hold: the next ones are written.
            self._disconnect()
            log.exception("%d events and %d requests could not be written", len(events), len(requests))
            return True
        self._recovered()
        if erase:
            with self._work:
                self._erase = True
        return not erase

    def _commit(self, events: Sequence[Event], requests: Sequence[RequestRecord]) -> None:
        rows = [self._row(event) for event in events]
        kept = [request_row(one) for one in requests]
        connection = self._connect()
        last_id = max([self._last_id, *(event.id for event in events)])
        connection.execute("BEGIN IMMEDIATE")
        try:
            tables.insert(connection, rows, kept)
            tables.prune(connection, self._bounds)
            tables.note_end(connection, last_id, clean=False)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._last_id = last_id

    def _row(self, event: Event) -> EventRow:
        try:
            return event_row(self._shown(event))
        except Exception:
            log.exception("event %d is stored without its details", event.id)
            return event_row(self._shown(replace(event, reason=None, data={})))

    def _connect(self) -> sqlite3.Connection:
        """The open file; opened again when somebody has taken it away. Raises sqlite3.Error and OSError."""
        if self._connection is not None and self._file != _identity(self.path):
            self._disconnect()
        if self._connection is None:
            try:
                check = self._file is None
                self._connection = open_file(self.path, check=check, busy_s=self._pace.busy_s)
            except Unfit as unfit:
                self._put_aside(str(unfit))
                self._connection = open_file(self.path, busy_s=self._pace.busy_s)
            self._file = _identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _put_aside(self, why: str) -> None:
        self._disconnect()
        with self._in_place:
            reason = set_aside(self.path, why)
        self._tell(News(reason.message, reason))

    def _mend(self, error: Exception) -> bool:
        """Begin a new file in place of a damaged one; whether that worked."""
        try:
            self._put_aside(f"is damaged ({error})")
            self._connect()
        except FAULTS as fault:
            self._failed(fault)
            return False
        return True

    def _failed(self, error: Exception) -> None:
        """Tell that nothing can be written, once until it can."""
        self._disconnect()
        if self.trouble is None:
            self.trouble = _unwritable(self.path, error)
            self._tell(News(self.trouble.message, self.trouble))

    def _recovered(self) -> None:
        was, self.trouble = self.trouble, None
        with self._work:
            events, requests = self._events.lost, self._requests.lost
            self._events.lost = self._requests.lost = 0
        if was is not None or events or requests:
            self._tell(News(_written_again(events, requests)))

    def _end(self) -> None:
        """Leave the file whole and closed, with the last id, so that the next life goes on from there."""
        if self._events or self._requests:
            log.warning("%d events and %d requests are lost", len(self._events), len(self._requests))
        try:
            tables.note_end(self._connect(), self._last_id, clean=True)
        except FAULTS as error:
            log.warning("%s was not closed in order: %s", self.path, error)
        self._disconnect()

    def _put(self, queue: Pending[T], item: T) -> None:
        with self._work:
            is_first = not self._has_work
            queue.put(item)
            if is_first:
                self._work.notify()


def _without_texts(record: RequestRecord) -> RequestRecord:
    return record if record.texts is None else replace(record, texts=None)


def _bytes_of(record: RequestRecord) -> int:
    return ENTRY_BYTES if record.texts is None else ENTRY_BYTES + TEXTS_LIMIT_BYTES


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _milliseconds() -> int:
    return int(datetime.now(UTC).timestamp() * MILLISECONDS)


def _unwritable(path: Path, error: Exception) -> Reason:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Reason(
        "event_log_unwritable",
        f"Events and requests cannot be written to {path}: {text}. The newest stay in memory.",
        "Free space on its disk, or correct its rights; it is tried again every"
        f" {RETRY_S:.0f} s, and what happened meanwhile is written then.",
        "warning",
        {"path": str(path)},
    )


def _written_again(events: int, requests: int) -> str:
    lost = f"{events} events and {requests} requests were too many to wait" if events or requests else ""
    return f"events and requests are written again; {lost or 'nothing was lost'}"
