"""How often the system killed for lack of host memory: the kernel's counters (FM-18). Never raises.

A process that the kernel kills says nothing itself. Called by runtime.crash_cause, which compares the count
with the one at the start of the process.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")
# 0::/path in the one hierarchy; 5:memory:/path in the older ones.
CONTROL_GROUP = re.compile(r"^(?:0:|\d+:(?:[a-z_,=]*,)?memory(?:,[a-z_,=]*)?):(/.*)$", re.MULTILINE)
COUNT = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)


def host_kills(root: Path = ROOT) -> int | None:
    """Kills so far: of our control group where it counts, else of the whole system. None: nobody counts."""
    groups = [found.lstrip("/") for found in CONTROL_GROUP.findall(_text(root / "proc/self/cgroup"))]
    counters = [
        root / "sys/fs/cgroup" / place
        for group in groups
        for place in (f"{group}/memory.events", f"memory/{group}/memory.oom_control")
    ]
    for counter in (*counters, root / "proc/vmstat"):
        if found := COUNT.search(_text(counter)):
            return int(found[1])
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
