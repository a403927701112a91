"""Who a process is: the same as one that was noted, an engine, one of ours (07 §7). Reads /proc and the like.

Called by runtime.records at a spawn, by runtime.adoption and runtime.sweep at the start of a manager.
Whatever cannot be read proves nothing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

import psutil

from framework.manifest.environment import INSTANCE_MARK

# `same`; `other`: its number belongs to another process by now; `gone`; `unknown`: it cannot be told.
Sameness = Literal["same", "other", "gone", "unknown"]
ENGINE_NAME = "llama-server"
# Field 22 of /proc/PID/stat is the start; what stands before the last parenthesis may hold anything.
FIELDS_AFTER_NAME = 22 - 3
PROC = Path("/proc")
# What Linux adds to the path of a program whose file was replaced.
DELETED = " (deleted)"
UNKNOWN = "none:"
MOST_PID = 2**31


def start_identity(pid: int) -> str:
    """When a process started, with the method that tells it: `proc:` by the kernel's own clock and the boot
    that it counts from, where there is /proc, else `ps:`, else `none:`.

    /proc comes first because psutil's time is by the wall clock, and moves with it.
    """
    if (PROC / "self" / "stat").exists():
        try:
            text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
            return f"proc:{text.rpartition(')')[2].split()[FIELDS_AFTER_NAME]}{_boot()}"
        except (OSError, IndexError):
            return UNKNOWN
    try:
        return f"ps:{psutil.Process(pid).create_time()}"
    except psutil.Error:
        return UNKNOWN


def _boot() -> str:
    """Which life of the kernel this is: after another boot the same number may start at the same tick."""
    with contextlib.suppress(OSError):
        return f"@{(PROC / 'sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}"
    return ""


def is_same(pid: int, identity: str) -> Sameness:
    """Whether the process with this number is the one that was noted. A zombie is gone: it holds nothing."""
    if not 0 < pid < MOST_PID:
        return "gone"
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return "gone"
    except psutil.NoSuchProcess:
        return "gone"
    except psutil.Error:
        return "unknown"
    now = start_identity(pid)
    method, _, value = identity.partition(":")
    now_method, _, now_value = now.partition(":")
    if not value or not now_value or method != now_method:
        return "unknown"
    return "same" if value == now_value else "other"


def program_of(pid: int) -> str:
    """The file that a process executes, links resolved; empty where that cannot be seen."""
    with contextlib.suppress(psutil.Error, OSError):
        return psutil.Process(pid).exe().removesuffix(DELETED)
    return ""


def is_engine(pid: int, exe: str) -> bool:
    """07 §7.3: positive proof only, by its name, its file, or the file that was noted."""
    program = program_of(pid)
    names = [Path(program).name]
    with contextlib.suppress(psutil.Error, OSError):
        names.append(psutil.Process(pid).name())
    return (bool(program) and program == exe) or any(n.casefold().startswith(ENGINE_NAME) for n in names)


def environment_of(pid: int) -> dict[str, str]:
    """What a process was started with; empty where that cannot be read, as of another user's."""
    with contextlib.suppress(psutil.Error, OSError):
        return dict(psutil.Process(pid).environ())
    return {}


def mark_of(environment: dict[str, str], state_id: str) -> str:
    """07 §7.4: the instance whose process was started with this environment by a manager of this state
    directory; empty for all others."""
    owner, _, instance = environment.get(INSTANCE_MARK, "").partition(":")
    return instance if owner == state_id else ""


def leads_group(pid: int) -> bool:
    """Whether its group is its own, so that a signal to the group reaches nobody else's process."""
    try:
        return os.getpgid(pid) == pid
    except OSError:
        return False
