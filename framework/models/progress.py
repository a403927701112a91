"""How far a starting server has come in reading its files (02 §13).

Called by runtime, once per health poll. Engines say nothing about their progress; what their process
holds in memory does.
"""

from __future__ import annotations

from pathlib import Path

import psutil

from framework.values.instance import LoadProgress

PROC = Path("/proc")
KIB = 1024
FRACTION_DIGITS = 4


class ResidentMark:
    """The most memory a process was seen to hold. Residency falls again once layers are on the GPU, and a
    bar must not run backwards. Another process id starts afresh."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._bytes = 0

    def observe(self, pid: int, resident_bytes: int) -> int:
        """Note a sample of process `pid`; returns the mark in bytes."""
        if pid != self._pid:
            self._pid, self._bytes = pid, 0
        self._bytes = max(self._bytes, resident_bytes)
        return self._bytes


def load_progress(mark_bytes: int, total_bytes: int, *, healthy: bool, file: str = "") -> LoadProgress:
    """Progress from the resident mark and the size of the file set (0 = unknown). Pure."""
    if healthy:
        return LoadProgress("ready", total_bytes or mark_bytes, total_bytes, 1.0, file)
    if total_bytes <= 0:
        return LoadProgress("mapping", mark_bytes, 0, 0.0, file)
    loaded = min(mark_bytes, total_bytes)
    return LoadProgress("mapping", loaded, total_bytes, round(loaded / total_bytes, FRACTION_DIGITS), file)


def resident_bytes(pid: int, *, proc: Path = PROC) -> int | None:
    """Memory that process `pid` holds; None when it is gone or cannot be looked at."""
    try:
        lines = (proc / str(pid) / "status").read_text("ascii", "replace").splitlines()
    except OSError:
        return _resident_by_psutil(pid)
    for line in lines:
        name, _, value = line.partition(":")
        number = value.split()[:1]
        if name == "VmRSS" and number and number[0].isdecimal():
            return int(number[0]) * KIB
    return 0


def _resident_by_psutil(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except (psutil.Error, OSError):
        return None
