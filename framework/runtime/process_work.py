"""How much an engine's processes have done, as the system counts it: what is slow works, what hangs does not.

Called by runtime.health_watch, in a thread. Never raises.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

# An engine that only answers probes and looks at its slots was seen to take 1 to 4 thousandths of a core.
WORK_SHARE = 0.01
PROC = Path("/proc")
# Fields of /proc/PID/stat behind the name, which may hold blanks: page faults that waited for a disk.
MAJOR_FAULTS = 9
STOPPED = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


@dataclass(frozen=True)
class Work:
    """What a process and its helpers have done since they began."""

    cpu_s: float
    page_ins: int
    """Pages that had to be read from a file or from swap; 0 where the system does not tell."""
    members: frozenset[int]
    is_stopped: bool
    """Whether the process itself is stopped, by SIGSTOP or a debugger."""

    def goes_on(self, before: Work | None, seconds: float) -> bool:
        """Whether there was work in the `seconds` since `before`; True where that cannot be told."""
        if before is None or before.members != self.members:
            return True
        return self.page_ins > before.page_ins or self.cpu_s - before.cpu_s >= WORK_SHARE * seconds


def read_work(leader: int) -> Work | None:
    """Of all processes in the group of this one; None when it cannot be looked at. Blocking."""
    cpu_s, page_ins, members, is_stopped = 0.0, 0, set[int](), False
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getpgid(pid) != leader:
                continue
            process = psutil.Process(pid)
            times = process.cpu_times()
            cpu_s += times.user + times.system
            page_ins += _major_faults(pid)
            members.add(pid)
            is_stopped = is_stopped or (pid == leader and process.status() in STOPPED)
    return Work(cpu_s, page_ins, frozenset(members), is_stopped) if members else None


def _major_faults(pid: int) -> int:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[MAJOR_FAULTS])
    except (OSError, ValueError, IndexError):
        return 0
