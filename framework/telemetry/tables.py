"""What is asked of the tables of the store: writing, bounding, finding. Blocking; raises sqlite3.Error.

Called by telemetry.store. Writing functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from framework.telemetry.events import DETAILS, OUTCOMES, Earlier
from framework.telemetry.rows import EventRow, RequestRow, event_of, moment_text, request_of
from framework.telemetry.store_file import WAL_BYTES
from framework.values.event import Event
from framework.values.request_record import RequestRecord

Table = Literal["events", "requests"]
Ended = Literal["in order", "killed"]
TABLES: tuple[Table, ...] = ("events", "requests")
# As `telemetry.events.is_detail`; the kinds are words of ours.
INFO = "info"
NO_DETAIL = (
    f"NOT (kind IN ({', '.join(repr(kind) for kind in sorted(DETAILS))})"
    " AND (reason IS NULL OR json_extract(reason, '$.severity') = ?))"
)
EVENT = "id, at, kind, model, replica, message, reason, data"
# What a new life of the manager has in memory at once: a page of everything, and the last of each model.
SEED_EVENTS = 1000
SEED_PER_MODEL = 10
SEED_MODELS = 1000
# While it runs, ids up to so many above the last written one count as given: those of the last moment before
# a kill were told to readers and are nowhere else.
RESERVED_IDS = 1000
# Making room costs the same for one entry and for many.
SHARE_DROPPED = 0.05
ERASED_AT_ONCE = 64


@dataclass(frozen=True)
class Bounds:
    """How much is kept: the newest entries of each table, in a file of at most so many bytes."""

    events: int = 100_000
    requests: int = 100_000
    file_bytes: int = 100 * 2**20

    @property
    def used_bytes(self) -> int:
        """What the tables may take, beside the file of what is not in them yet and of one more batch."""
        return self.file_bytes - min(4 * WAL_BYTES, self.file_bytes // 4)

    def most(self, table: Table) -> int:
        """How many entries a table may have."""
        return self.events if table == "events" else self.requests


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True)
class KeptRequest:
    """A request of the log. `seq` is its place, which grows."""

    seq: int
    record: RequestRecord


def insert(
    connection: sqlite3.Connection, events: Iterable[EventRow], requests: Iterable[RequestRow]
) -> None:
    """Add entries; one that is there already, because its commit was thought to have failed, stays."""
    connection.executemany(
        f"INSERT OR IGNORE INTO events ({EVENT}, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", events
    )
    connection.executemany(
        "INSERT OR IGNORE INTO requests (id, at, model, key, status, document, bytes, texts)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        requests,
    )


def note_end(connection: sqlite3.Connection, last_id: int, *, clean: bool) -> None:
    """Leave the highest id that may have been given; `clean`: the writer ends in order."""
    reserved = last_id if clean else last_id + RESERVED_IDS
    connection.executemany(
        "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
        [("reserved", reserved), ("clean", int(clean))],
    )


def prune(connection: sqlite3.Connection, bounds: Bounds) -> None:
    """Drop the oldest entries beyond the bounds.

    Each table may take what the other leaves, and none is pushed below half of the file by the other.
    """
    for table in TABLES:
        excess = count(connection, table) - bounds.most(table)
        if excess > 0:
            _drop(connection, table, excess)
    limit = bounds.used_bytes
    while (used := _used_bytes(connection)) > limit:
        requests = _content_bytes(connection, "requests")
        total = requests + _content_bytes(connection, "events")
        larger: Table = "requests" if requests * 2 > total else "events"
        entries = count(connection, larger)
        if not entries:
            return
        share = max(SHARE_DROPPED, (used - limit) / used)
        _drop(connection, larger, max(1, int(entries * share)))


def erase_texts(connection: sqlite3.Connection) -> bool:
    """Erase the texts of all requests, also from what the file has beside it. Outside of a transaction.

    False when somebody reads for so long that it has to be done again.
    """
    erased = 1
    while erased:
        # A few at a time: what is overwritten stands beside the file first.
        erased = connection.execute(
            "UPDATE requests SET texts = NULL WHERE seq IN"
            " (SELECT seq FROM requests WHERE texts IS NOT NULL LIMIT ?)",
            (ERASED_AT_ONCE,),
        ).rowcount
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            return False
    return True


def earlier(connection: sqlite3.Connection) -> Earlier:
    """What a new life of the manager begins with."""
    rows = connection.execute(
        f"SELECT {EVENT} FROM events ORDER BY id DESC LIMIT ?", (SEED_EVENTS,)
    ).fetchall()
    if len(rows) == SEED_EVENTS:
        oldest = rows[-1][0]
        models = connection.execute("SELECT DISTINCT model FROM events LIMIT ?", (SEED_MODELS,)).fetchall()
        for (model,) in models:
            rows += connection.execute(
                f"SELECT {EVENT} FROM events WHERE model IS ? AND id < ? ORDER BY id DESC LIMIT ?",
                (model, oldest, SEED_PER_MODEL),
            )
    else:
        oldest = 1
    (reserved,) = connection.execute(
        "SELECT max(ifnull((SELECT value FROM meta WHERE name = 'reserved'), 0),"
        " ifnull((SELECT max(id) FROM events), 0))"
    ).fetchone()
    clean = connection.execute("SELECT value FROM meta WHERE name = 'clean'").fetchone()
    events = sorted((event for row in rows if (event := event_of(row))), key=lambda event: event.id)
    ended: Ended | None = None if clean is None else "in order" if clean[0] else "killed"
    return Earlier(tuple(events), reserved + 1, oldest - 1, ended)


def find_events(
    connection: sqlite3.Connection,
    *,
    model: str | None,
    kind: str | None,
    since: int,
    before: int | None,
    limit: int,
) -> list[Event]:
    """The newest `limit` events that pass, oldest first."""
    tests: list[tuple[str, object]] = [("id > ?", since)]
    tests += [("id < ?", before)] if before is not None else []
    tests += [("model = ?", model)] if model is not None else []
    if kind == OUTCOMES:
        tests.append((NO_DETAIL, INFO))
    elif kind is not None:
        tests.append(("kind = ?", kind))
    rows = connection.execute(
        f"SELECT {EVENT} FROM events WHERE {_all(tests)} ORDER BY id DESC LIMIT ?",
        (*(value for _, value in tests), limit),
    )
    return [event for row in rows if (event := event_of(row))][::-1]


def find_requests(
    connection: sqlite3.Connection,
    *,
    model: str | None = None,
    key: str | None = None,
    request_id: str | None = None,
    statuses: tuple[int, int] | None = None,
    since_at: datetime | None = None,
    took_s: int | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 1,
) -> list[KeptRequest]:
    """The newest `limit` requests that pass, oldest first; texts only of one that is named by its id.
    `statuses` are the lowest and the highest one."""
    tests: list[tuple[str, object]] = [("seq < ?", before)] if before is not None else []
    tests += [("seq > ?", after)] if after is not None else []
    tests += [("status >= ?", statuses[0]), ("status <= ?", statuses[1])] if statuses is not None else []
    tests += [("at >= ?", moment_text(since_at))] if since_at is not None else []
    tests += [("model = ?", model)] if model is not None else []
    tests += [("key = ?", key)] if key is not None else []
    tests += [("json_extract(document, '$.total_s') >= ?", took_s)] if took_s is not None else []
    tests += [("id = ?", request_id)] if request_id is not None else []
    texts = "NULL" if request_id is None else "texts"
    rows = connection.execute(
        f"SELECT seq, at, document, {texts} FROM requests WHERE {_all(tests)} ORDER BY seq DESC LIMIT ?",
        (*(value for _, value in tests), limit),
    )
    found = ((seq, request_of(tuple(row))) for seq, *row in rows)
    return [KeptRequest(seq, record) for seq, record in found if record is not None][::-1]


def count(connection: sqlite3.Connection, table: Table) -> int:
    """Entries of a table."""
    (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


def _all(tests: Iterable[tuple[str, object]]) -> str:
    return " AND ".join(test for test, _ in tests) or "TRUE"


def _drop(connection: sqlite3.Connection, table: Table, oldest: int) -> None:
    place = "id" if table == "events" else "seq"
    connection.execute(
        f"DELETE FROM {table} WHERE {place} <="
        f" (SELECT max({place}) FROM (SELECT {place} FROM {table} ORDER BY {place} LIMIT ?))",
        (oldest,),
    )


def _used_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def _content_bytes(connection: sqlite3.Connection, table: Table) -> int:
    (size,) = connection.execute(f"SELECT ifnull(sum(bytes), 0) FROM {table}").fetchone()
    return int(size)
