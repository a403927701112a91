"""Whether a path that somebody wrote is a file that can be opened without harm. One stat call.

A pipe or a device must not even be opened, and pathlib raises for names that no file can have.
"""

from __future__ import annotations

import stat
from pathlib import Path

from framework.models.gguf_header import os_cause

ABSENT, FOLDER, SPECIAL = "does not exist", "is a folder", "is no regular file"
NO_FILES = (FOLDER, SPECIAL)
"""What is there, and is nothing that can be read like a file."""


def file_fault(path: Path) -> str:
    """Why a path is no regular file, as a clause; empty where it is one. Never raises."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ABSENT
    except OSError as error:
        return os_cause(error)
    if stat.S_ISREG(mode):
        return ""
    return FOLDER if stat.S_ISDIR(mode) else SPECIAL


def is_folder(path: Path) -> bool:
    """Whether there is a folder at a path. Never raises."""
    return file_fault(path) == FOLDER
