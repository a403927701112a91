"""How much memory of each kind a process has in use, as Linux tells it in `/proc/PID/status`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")
KIB = 1024
# Pages of files are left out: the system takes them back whenever it wants to.
OWN = ("RssAnon", "RssShmem")


def resident_bytes(pid: int, proc: Path = PROC) -> Mapping[str, int]:
    """Bytes by the names of the system, `RssAnon`, `RssFile` and `RssShmem`; what is not told is missing.

    Raises OSError for a process that is gone, or where the system has no such file.
    """
    status = (proc / str(pid) / "status").read_text("ascii", "replace")
    pairs = (line.partition(":") for line in status.splitlines())
    numbers = {name: value.split() for name, _, value in pairs if name.startswith("Rss")}
    return {name: int(words[0]) * KIB for name, words in numbers.items() if words and words[0].isdecimal()}
