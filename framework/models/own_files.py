"""Small files of this user's own that hold what was found out before: caches and answers. Blocking.

Called by header_cache and runtime.measurements. Whatever is not plainly ours and whole is no file to read: a
pipe or a device in its place must not hold us up, and what others may write must not be believed.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

PRIVATE_FILE = 0o600
UNFINISHED = ".tmp"
"""Ends the names of files that are not whole; what is left of one is of a process that was killed."""
OTHERS = 0o077


def is_own_folder(folder: Path) -> bool:
    """Whether this is a directory of ours that nobody else may enter; a link to one is none."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and is_private(found)


def is_own_place(folder: Path) -> bool:
    """Whether this is such a directory, in one of ours that nobody else may enter either."""
    try:
        return is_own_folder(folder) and is_private(folder.parent.stat())
    except OSError:
        return False


def is_private(found: os.stat_result) -> bool:
    """Whether it belongs to us and gives others no rights."""
    return found.st_uid == os.geteuid() and not found.st_mode & OTHERS


def read_own(path: Path, limit_bytes: int) -> bytes | None:
    """The content of a regular private file of ours of at most `limit_bytes`; None for anything else."""
    # Non-blocking: a pipe in the file's place must not make us wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            fine = stat.S_ISREG(found.st_mode) and is_private(found) and found.st_size <= limit_bytes
            return file.read(limit_bytes) if fine else None
    except OSError:
        return None


def write_own(path: Path, data: bytes) -> None:
    """Replace a file as a whole, whatever lies there. Raises OSError."""
    temporary = path.with_name(f".{os.getpid()}.{threading.get_ident()}{UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, PRIVATE_FILE), "wb") as file:
            file.write(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def prune(folder: Path, *, most_files: int, most_bytes: int) -> None:
    """Drop the oldest entries beyond so many, or beyond so many bytes together. Raises OSError."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process drops them too
                info = entry.stat(follow_symlinks=False)
                found.append((info.st_mtime_ns, entry.path, info.st_size))
    used_bytes = 0
    for number, (_, path, size_bytes) in enumerate(sorted(found, reverse=True)):
        used_bytes += size_bytes
        if number >= most_files or used_bytes > most_bytes:
            with suppress(IsADirectoryError, PermissionError):  # no entry of ours
                Path(path).unlink(missing_ok=True)
