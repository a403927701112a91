"""What a process really holds, as the system and the drivers see it, to be compared with plan and log.

Called when an engine is ready, and by readers of pages. Where nobody can tell, nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from framework.runtime.process_status import OWN, PROC, resident_bytes
from framework.values.device import Device

# A wrapper starts an engine, which starts nothing; more is not looked through.
MOST_PROCESSES = 64


@dataclass(frozen=True)
class HostMemory:
    """Bytes of host memory of a process and those it started: its own, and pages of files."""

    own_bytes: int
    mapped_bytes: int


def host_memory_of(pid: int, *, proc: Path = PROC) -> HostMemory | None:
    """What the system says; None where it does not, or the process is gone. Reads a few small files."""
    waiting, own, mapped, seen = [pid], 0, 0, 0
    while waiting and seen < MOST_PROCESSES:
        member = waiting.pop()
        children_file = proc / str(member) / "task" / str(member) / "children"
        try:
            fields = resident_bytes(member, proc)
            children = children_file.read_text("ascii", "replace")
        except OSError:
            continue
        seen += 1
        own += sum(fields.get(name, 0) for name in OWN)
        mapped += fields.get("RssFile", 0)
        waiting += [int(child) for child in children.split() if child.isdecimal()]
    return HostMemory(own, mapped) if seen and own else None


def device_bytes_of(pid: int, devices: Iterable[Device]) -> Mapping[str, int]:
    """What drivers say that a process and those it started hold, by device. Left out: who cannot tell."""
    found = {}
    for device in devices:
        held = [used for other, used in device.used_by_pid.items() if _is_of(other, pid)]
        if held:
            found[device.name] = sum(held)
    return found


def _is_of(pid: int, leader: int) -> bool:
    """Whether a process is an engine, or was started by its wrapper, which leads their group."""
    if pid == leader:
        return True
    try:
        return os.getpgid(pid) == leader
    except OSError:
        return False
