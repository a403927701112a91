"""What stands at a path: a file that can be run, nothing, or something in the way (06 §2.3)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

PathStatus = Literal["file", "not_executable", "directory", "other", "absent", "denied"]
StatFunction = Callable[[Path], os.stat_result]

# 06 §2.3: about one second in all. An antivirus scan or an install being swapped is over by then.
DENIED_TRIES = 5
DENIED_WAIT_S = 0.2


def path_status(
    path: Path, *, sleep: Callable[[float], None] = time.sleep, stat_path: StatFunction = os.stat
) -> PathStatus:
    """Status of `path`, links followed. Blocks up to a second while permission is denied; never raises."""
    for tries_left in reversed(range(DENIED_TRIES)):
        try:
            mode = stat_path(path).st_mode
        except PermissionError:
            sleep(DENIED_WAIT_S)
            if tries_left:
                continue
            return "denied"
        except (OSError, ValueError):  # ValueError: a NUL byte in a name that came from the environment
            return "absent"
        return _kind(path, mode)
    raise AssertionError("unreachable: the last try returns")


def _kind(path: Path, mode: int) -> PathStatus:
    if stat.S_ISDIR(mode):
        return "directory"
    if not stat.S_ISREG(mode):
        return "other"
    return "file" if os.access(path, os.X_OK) else "not_executable"
