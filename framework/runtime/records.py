"""What is noted of each process, so that another life of this manager knows it (07 §6).

One file for each instance, `<state dir>/instances/<instance>.json`, written after the spawn and again once
the process is ready; clean-up removes it. Beside it lies what a process prints that outlives us. Files are
private, replaced in one step, and never followed through links; whatever cannot be understood is no
record.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from framework.engines.redaction import redact_argv
from framework.models.own_files import UNFINISHED, write_own
from framework.planning.slot_saving.fingerprint import Loaded
from framework.reconcile.compare import request_digest
from framework.runtime.private import make_private
from framework.runtime.process_identity import program_of, start_identity
from framework.telemetry.events import utc_now
from framework.values.naming import instance_file_name, instance_name
from framework.values.plan import REDACTED, LaunchPlan, LaunchResult
from framework.values.request import ModelRequest

log = logging.getLogger(__name__)

VERSION = 1
FOLDER = "instances"
RECORD, OUTPUT = ".json", ".out"
# A plan has some tens of kilobytes, a chat template in it perhaps as many again.
MOST_BYTES = 4 * 2**20
# More files than this many are not of ours, and a start must not read for ever.
MOST_RECORDS = 1000
MOST_PORT = 65535


@dataclass(frozen=True)
class Committed:
    """What a process turned out to be once it was ready."""

    plan: LaunchPlan
    """Without values of variables, and of flags that sound like secrets."""
    result: LaunchResult
    ready_at: datetime
    restarts: int
    loaded: Loaded | None = None
    """What its slots belong to; None where none are saved."""


@dataclass(frozen=True)
class Record:
    """07 §6.2. `key` is there where the process may outlive us; it opens the engine."""

    version: int
    instance: str
    model: str
    replica: int
    generation: int
    pid: int
    identity: str
    exe: str
    port: int
    state_id: str
    owner_pid: int
    owner_identity: str
    created: datetime
    digest: str
    fingerprint: str
    key: str | None = None
    committed: Committed | None = None
    """None of a process that was not ready yet."""


@dataclass(frozen=True)
class Named:
    """The instance that a record is about."""

    request: ModelRequest
    replica: int
    generation: int
    restarts: int

    @property
    def name(self) -> str:
        """As it is shown."""
        return instance_name(self.request.id, self.replica, self.generation)

    @property
    def file_name(self) -> str:
        """As one component of a path."""
        return instance_file_name(self.request.id, self.replica, self.generation)


@dataclass(frozen=True)
class Trace:
    """What one instance leaves behind while its process lives. All methods block for a disk."""

    folder: Path
    state_id: str
    named: Named
    outlives: bool
    """Whether a process that is started now goes on when the manager ends."""

    @property
    def output(self) -> Path:
        """Where a process that outlives us prints."""
        return self.folder / f"{self.named.file_name}{OUTPUT}"

    def begin(self, pid: int, port: int, key: str | None, *, program: str, fingerprint: str) -> None:
        """A process of `program` was started. A failure to write is no failure of the launch."""
        record = Record(
            VERSION,
            self.named.name,
            self.named.request.id,
            self.named.replica,
            self.named.generation,
            pid,
            start_identity(pid),
            os.path.realpath(program),
            port,
            self.state_id,
            os.getpid(),
            start_identity(os.getpid()),
            utc_now(),
            request_digest(self.named.request),
            fingerprint,
            key if self.outlives else None,
        )
        self._write(record)

    def commit(self, plan: LaunchPlan, result: LaunchResult, loaded: Loaded | None) -> None:
        """It is ready. By now it executes what it will, be it behind a script."""
        record = read_record(self._path)
        if record is None:
            return
        if loaded is not None:
            loaded = replace(loaded, plan=without_secrets(loaded.plan))
        committed = Committed(without_secrets(plan), result, utc_now(), self.named.restarts, loaded)
        exe = program_of(record.pid) or record.exe
        self._write(replace(record, exe=exe, committed=committed))

    def remove(self) -> None:
        """The process is gone."""
        remove(self._path)

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.named.file_name}{RECORD}"

    def _write(self, record: Record) -> None:
        try:
            make_private(self.folder)
            write_own(self._path, _adapter().dump_json(record))
        except (OSError, ValueError) as error:
            log.warning(
                "%s: cannot write %s: %s; the next `paddock up` cannot take its process over, and ends it",
                self.named.name,
                self._path,
                getattr(error, "strerror", None) or error,
            )


def read_records(state_dir: Path) -> dict[Path, Record | None]:
    """All records of a state directory, None for files that are none. Never raises."""
    paths: list[Path] = []
    with contextlib.suppress(OSError):
        paths = sorted((state_dir / FOLDER).glob(f"*{RECORD}"))[:MOST_RECORDS]
    return {path: read_record(path) for path in paths}


def read_record(path: Path) -> Record | None:
    """One record, or None for whatever else lies there: of another user, too large, garbage."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                return None
            text = file.read(MOST_BYTES + 1)
        record = _adapter().validate_json(text) if len(text) <= MOST_BYTES else None
    except (OSError, ValidationError):
        return None
    return record if record is not None and _is_sound(record, path) else None


def claim(state_dir: Path, record: Record) -> None:
    """The process of a record is this manager's from now on. A failure to write leaves it to the one before,
    which is gone all the same."""
    name = instance_file_name(record.model, record.replica, record.generation)
    ours = replace(record, owner_pid=os.getpid(), owner_identity=start_identity(os.getpid()))
    with contextlib.suppress(OSError):
        write_own(state_dir / FOLDER / f"{name}{RECORD}", _adapter().dump_json(ours))


def remove(path: Path) -> None:
    """Take away a record and what the process printed; what is gone already is fine."""
    for one in (path, path.with_name(path.name.removesuffix(RECORD) + OUTPUT)):
        with contextlib.suppress(OSError):
            one.unlink()


def remove_outputs(state_dir: Path) -> None:
    """Take away what processes printed of which nothing else is known, and records that were not finished."""
    with contextlib.suppress(OSError):
        for path in (state_dir / FOLDER).glob(f".*{UNFINISHED}"):
            path.unlink(missing_ok=True)
    for path in _outputs(state_dir):
        if not path.with_name(path.name.removesuffix(OUTPUT) + RECORD).exists():
            remove(path)


def without_secrets(plan: LaunchPlan) -> LaunchPlan:
    """The plan as it may be kept on a disk."""
    request = replace(
        plan.request,
        env=_names(plan.request.env),
        engine=replace(plan.request.engine, env=_names(plan.request.engine.env)),
        extra_args=redact_argv(plan.request.extra_args),
    )
    inputs = plan.spec_inputs
    return replace(
        plan,
        request=request,
        env=_names(plan.env),
        sections=tuple(replace(one, tokens=redact_argv(one.tokens)) for one in plan.sections),
        spec_inputs=None if inputs is None else replace(inputs, args=redact_argv(inputs.args)),
    )


def _names(environment: Mapping[str, str]) -> dict[str, str]:
    """Without values: a process has its own, and which of them are secrets no name says for sure."""
    return dict.fromkeys(environment, REDACTED)


def _outputs(state_dir: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted((state_dir / FOLDER).glob(f"*{OUTPUT}"))


def _is_sound(record: Record, path: Path) -> bool:
    """Whether it can be what `Trace` wrote: numbers that exist, and the instance that its file is named
    after."""
    numbers = (record.model, record.replica, record.generation)
    times = (record.created, *([record.committed.ready_at] if record.committed else []))
    return (
        record.version == VERSION
        and record.pid > 0
        and 0 < record.port <= MOST_PORT
        and 0 <= record.replica < MOST_RECORDS
        and record.instance == instance_name(*numbers)
        and path.name == f"{instance_file_name(*numbers)}{RECORD}"
        and all(one.tzinfo is not None for one in times)
    )


@cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)
