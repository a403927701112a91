"""End what an earlier life of this manager left behind, by proof and never by name (07 §8).

Step A goes by the records of this state directory, step B by the mark that each process of ours has in its
environment: it holds the id of this state directory, which only its holder writes. So a server that a person
started is never touched, whatever it is called and wherever its file lies, not even one of the prebuilt
wheel. What step B finds has lost its record or was never in one, such as the engine behind a wrapper script
that does not `exec` it.

Called by app, in a thread, before any plan and after runtime.adoption has taken its part.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import psutil

from framework.runtime.process_identity import (
    Sameness,
    environment_of,
    is_engine,
    is_same,
    mark_of,
    program_of,
)
from framework.runtime.records import Record, read_records, remove, remove_outputs
from framework.values.naming import instance_in_file

# SIGKILL takes effect at once, unless a driver call holds the process; the start does not wait for that.
GONE_WAIT_S = 5.0
# `forget`: the record goes, the process stays as it is; `leave`: both stay; `end`: both go.
Verdict = Literal["forget", "leave", "end"]


@dataclass(frozen=True)
class Sight:
    """What was seen of the process of a record, and of the manager that wrote it."""

    is_self: bool
    owner: Sameness
    process: Sameness
    is_engine: bool
    is_ours: bool | None
    """Whether it has our mark; None where its environment cannot be read."""


@dataclass(frozen=True)
class Orphan:
    """A process that was ended, or, with `is_left`, that may be ours and could not be proven to be.

    `instance` is the one that it belonged to, `step` what found it.
    """

    pid: int
    exe: str
    instance: str
    step: Literal["record", "mark"]
    gone: bool = False
    is_left: bool = False
    held_bytes: Mapping[str, int] = field(default_factory=dict)
    """What it held of each device, where its record says so."""
    damaged: str = ""
    """Name of its record, where there is one that cannot be read; else empty."""


def sweep(state_dir: Path, state_id: str, adopted: Collection[str] = ()) -> list[Orphan]:
    """Both steps, past the instances that were taken over. REQUIRES: we hold the state directory."""
    ending: dict[psutil.Process, Orphan] = {}
    noted: dict[str, Path] = {}
    left: dict[int, Orphan] = {}
    damaged: dict[str, str] = {}
    for path, record in read_records(state_dir).items():
        if record is not None and record.instance in adopted:
            continue
        verdict = judge(_see(record, state_id)) if record is not None else "forget"
        if record is None:
            damaged[path.stem] = path.name
        if record is None or verdict == "forget":
            remove(path)
        elif verdict == "leave":
            left[record.pid] = replace(_orphan(record), is_left=True)
        else:
            with contextlib.suppress(psutil.Error):
                ending[psutil.Process(record.pid)] = _orphan(record)
            noted[record.instance] = path
    # Also what lies behind a process that is left, such as the engine of a wrapper.
    spared = {*adopted, *(orphan.instance for orphan in left.values())}
    for process in psutil.process_iter():
        instance = mark_of(environment_of(process.pid), state_id)
        if not instance or instance in spared or process in ending:
            continue
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                program, record_name = program_of(process.pid), damaged.get(instance_in_file(instance), "")
                ending[process] = Orphan(process.pid, program, instance, "mark", damaged=record_name)
    ended = _end(ending)
    # What would not go keeps its record, and its name.
    alive = {orphan.instance for orphan in ended if not orphan.gone}
    for instance, path in noted.items():
        if instance not in alive:
            remove(path)
    remove_outputs(state_dir)
    return [*ended, *left.values()]


def judge(sight: Sight) -> Verdict:
    """What happens to a record and its process (07 §8.2). Pure."""
    if sight.is_self:
        return "leave"
    if sight.process in ("gone", "other"):
        return "forget"
    if sight.owner in ("same", "unknown") or sight.process == "unknown":
        # Removing the only trace of a possible orphan would help nobody.
        return "leave"
    is_proven = sight.is_engine if sight.is_ours is None else sight.is_ours
    return "end" if is_proven else "forget"


def _orphan(record: Record) -> Orphan:
    held = record.committed.plan.placement.needs_bytes if record.committed is not None else {}
    exe = program_of(record.pid) or record.exe
    return Orphan(record.pid, exe, record.instance, "record", held_bytes=held)


def _see(record: Record, state_id: str) -> Sight:
    is_ours = record.state_id == state_id
    environment = environment_of(record.pid)
    return Sight(
        is_self=record.pid == os.getpid(),
        # What another state directory noted, and somebody copied here, is that directory's business.
        owner=is_same(record.owner_pid, record.owner_identity) if is_ours else "unknown",
        process=is_same(record.pid, record.identity),
        is_engine=is_engine(record.pid, record.exe),
        is_ours=bool(mark_of(environment, state_id)) if environment else None,
    )


def _end(processes: dict[psutil.Process, Orphan]) -> list[Orphan]:
    for process in processes:
        # psutil looks once more whether the number still belongs to the same process.
        with contextlib.suppress(psutil.Error):
            process.kill()
    gone, _ = psutil.wait_procs(list(processes), timeout=GONE_WAIT_S)
    return [replace(orphan, gone=process in gone) for process, orphan in processes.items()]
