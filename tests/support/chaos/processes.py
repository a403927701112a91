"""What the system says of `paddock up` and its engines. Processes are known by their mark, never by name."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

import psutil

from framework.runtime.process_identity import environment_of, mark_of


@dataclass(frozen=True)
class Held:
    """What one process holds of the system."""

    descriptors: int
    sockets: int
    rss_bytes: int


def held_by(pid: int) -> Held:
    """Now."""
    process = psutil.Process(pid)
    return Held(process.num_fds(), len(process.net_connections("all")), process.memory_info().rss)


def engines_of(state_id: str) -> dict[int, str]:
    """The instance of each living process that a manager of this state directory started, by process id."""
    found: dict[int, str] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            instance = mark_of(environment_of(process.pid), state_id)
            if instance and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = instance
    return found


def zombies_of(pid: int) -> list[int]:
    """Children that have ended and were not collected."""
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(child.pid)
    return found


def send(pid: int, number: signal.Signals) -> bool:
    """Whether there was a process to take the signal."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
