"""End what an earlier life of this manager left behind, by proof and never by name (07 §8).

Children die with the manager by themselves, but a wrapper script that does not `exec` its engine, or a helper
that left the process group, does not pass that on. Proof is the mark in a process's environment: it holds
the id of this state directory, which only its holder writes. Called by app, in a thread, before any plan.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import psutil

from framework.manifest.environment import INSTANCE_MARK

# SIGKILL takes effect at once, unless a driver call holds the process; the start does not wait for that.
GONE_WAIT_S = 5.0


@dataclass(frozen=True)
class Orphan:
    """A process that carried our mark and was ended. `instance` is the one that it belonged to."""

    pid: int
    exe: str
    instance: str
    gone: bool


def end_orphans(state_id: str) -> list[Orphan]:
    """Kill every process with the mark of this state directory. REQUIRES: we hold it. Never raises."""
    found = [(process, mark) for process in psutil.process_iter() if (mark := _mark(process, state_id))]
    for process, _ in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    gone, _ = psutil.wait_procs([process for process, _ in found], timeout=GONE_WAIT_S)
    return [Orphan(process.pid, _exe(process), mark, process in gone) for process, mark in found]


def _mark(process: psutil.Process, state_id: str) -> str:
    """The instance that a process belongs to, empty for a process that is not ours or cannot be looked at."""
    if process.pid == os.getpid():
        return ""
    try:
        owner, _, instance = process.environ().get(INSTANCE_MARK, "").partition(":")
    except (psutil.Error, OSError):
        return ""
    return instance if owner == state_id else ""


def _exe(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error, OSError):
        return process.exe()
    return ""
