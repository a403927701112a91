"""The SQLite file of events and requests: private, of this version, and set aside where it is not (07 §14.1).

Called by telemetry.store, in the thread that writes. A file that is damaged, of another program or of another
version is renamed and a new one is begun: nothing in it is believed, nothing in it is lost. Blocking.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from framework.values.reason import Reason

FILE_NAME = "paddock.sqlite"
# "PADK": a file of another program is told from one of ours.
APPLICATION_ID = 0x5041444B
# Changes with every change of the tables. There is no way from one version to another: the old file is set
# aside, and can be put back for the version that wrote it.
VERSION = 1
PRIVATE_FILE = 0o600
OTHERS = 0o077
# Somebody who looks into the file with another program may lock it for a moment.
BUSY_S = 5.0
# What the file is accompanied by while it is open.
COMPANIONS = ("", "-wal", "-shm")
# Each may be as large as the file itself.
MOST_SET_ASIDE = 3
WAL_PAGES = 500
WAL_BYTES = 4 * 2**20

SCHEMA = f"""
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, model TEXT, replica INTEGER,
    message TEXT NOT NULL, reason TEXT, data TEXT NOT NULL, bytes INTEGER NOT NULL
);
CREATE INDEX events_by_model ON events (model, id);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at TEXT NOT NULL, model TEXT, key TEXT,
    status INTEGER NOT NULL, document TEXT NOT NULL, bytes INTEGER NOT NULL, texts TEXT
);
CREATE INDEX requests_by_model ON requests (model, seq);
CREATE INDEX requests_by_key ON requests (key, seq);
CREATE INDEX requests_with_texts ON requests (seq) WHERE texts IS NOT NULL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""
COLUMNS = {
    "meta": "name, value",
    "events": "id, at, kind, model, replica, message, reason, data, bytes",
    "requests": "seq, id, at, model, key, status, document, bytes, texts",
}
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Unfit(Exception):
    """The file is there and cannot be one of ours; the text says what it is, as the end of a sentence."""


def open_file(path: Path, *, check: bool = False, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open the file for writing, made when it is missing; `check`: look through one that was not closed in
    order. Whoever else holds it is waited for, `busy_s` long. Raises Unfit, sqlite3.Error and OSError.
    """
    _make_private(path)
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        _look_at(connection, check=check)
        # Survives the end of the process at once, and of the machine at the next checkpoint.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    except BaseException as error:
        connection.close()
        if is_damage(error):
            raise Unfit(f"is damaged ({error})") from error
        raise
    return connection


def open_to_read(path: Path) -> closing[sqlite3.Connection]:
    """A connection that sees what was written and cannot write. Raises sqlite3.Error."""
    # By its bytes: a name may be no UTF-8.
    uri = f"file:{quote(os.fsencode(path))}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S))


def is_damage(error: BaseException) -> bool:
    """Whether an error means that the file itself is broken, not its disk or its rights."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE


def set_aside(path: Path, why: str) -> Reason:
    """Rename a file and its companions, and drop the oldest of those set aside before. Raises OSError."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    aside = path.with_name(f"{path.name}.aside-{moment}")
    for ending in COMPANIONS:
        if os.path.lexists(f"{path}{ending}"):
            Path(f"{path}{ending}").replace(f"{aside}{ending}")
    kept = sorted(_set_aside_before(path))
    for old in kept[: max(0, len(kept) - MOST_SET_ASIDE)]:
        for ending in COMPANIONS:
            Path(f"{old}{ending}").unlink(missing_ok=True)
    return Reason(
        "event_log_set_aside",
        f"{path.name} {why}; it was renamed to {aside.name}, and a new one begun.",
        "Events and requests of before are in that file: keep it for the version that wrote it, try"
        " `sqlite3 FILE .recover` on a damaged one, or delete it.",
        "warning",
        {"path": str(aside)},
    )


def _set_aside_before(path: Path) -> Iterator[Path]:
    for found in path.parent.glob(f"{path.name}.aside-*"):
        if not found.name.endswith(COMPANIONS[1:]):
            yield found


def _make_private(path: Path) -> None:
    """Make a missing file private from its first moment; what is not a file of ours is unfit."""
    try:
        os.close(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        )
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise Unfit("is no file of this user") from None
        if found.st_mode & OTHERS:
            path.chmod(PRIVATE_FILE)


def _look_at(connection: sqlite3.Connection, *, check: bool) -> None:
    """Make the tables of a new file; refuse any other that is not of this version, and whole."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not version and not application:
        connection.executescript(SCHEMA)
        return
    if application != APPLICATION_ID:
        raise Unfit("is not a file of Paddock")
    if version != VERSION:
        raise Unfit(f"has version {version}, and only version {VERSION} can be read")
    try:
        for table, columns in COLUMNS.items():
            connection.execute(f"SELECT {columns} FROM {table} LIMIT 0")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            raise Unfit(f"lacks a part ({error})") from error
        raise
    clean = connection.execute("SELECT value FROM meta WHERE name = 'clean'").fetchone()
    if check and clean != (1,):
        # Its last writer was killed: that leaves a whole file, a failing disk does not.
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise Unfit(f"is damaged ({verdict})")
