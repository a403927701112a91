"""What a process prints that must outlive us: a file that it appends to and that we read as it grows (07
§8.7).

A pipe ends with its reader, and a full one stops the writer; a file does neither. The process holds it open
in append mode, so that it can be emptied under it: the next line then stands at the start. Renaming it would
not do, since the process would go on writing to the old one. It is emptied once everything in it has been
read; a line that is printed in the very moment between may be lost, as with any log that is emptied in place.

Read by runtime.kept, in threads. Nobody empties the file while no manager runs, but then nobody asks the
engine anything either.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from framework.runtime.private import make_private

READ_SIZE = 64 * 1024
# Room for the start of the most talkative build; what is worth keeping is in the log of that start by then.
LIMIT_BYTES = 8 * 2**20
# The log of a ready engine keeps 2000 lines; this many bytes hold more than that.
LAST_BYTES = 512 * 1024
PRIVATE_FILE = 0o600


def new_output(path: Path) -> int:
    """A fresh private file in append mode, in place of whatever lies there, for a process to print into; the
    descriptor of it. Raises OSError."""
    make_private(path.parent)
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, PRIVATE_FILE)


class OutputFile:
    """Our end of it. All calls block for as long as the disk does."""

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        """`from_end`: only the last half megabyte of what is there counts. Raises OSError, also where a
        link, a pipe or a file of somebody else lies in its place."""
        # Non-blocking: a pipe in the file's place must not make us wait for a writer.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        # Nobody may close it, and somebody else get its number, while a slow disk holds a call up.
        self._lock = threading.Lock()
        self._file = os.open(path, flags)
        try:
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise PermissionError(f"{path} is no file of this user")
            self._at = max(0, found.st_size - LAST_BYTES) if from_end else 0
            self._cut_line = self._at > 0
        except BaseException:
            os.close(self._file)
            raise

    def take(self) -> tuple[bytes, int]:
        """The next bytes, none where there is nothing new, and how many were dropped because nobody can read
        so fast. Raises OSError."""
        with self._lock:
            size = os.fstat(self._file).st_size
            if size < self._at:
                # Somebody else emptied it.
                self._at = 0
            chunk = os.pread(self._file, READ_SIZE, self._at)
            self._at += len(chunk)
            dropped = 0
            if size >= LIMIT_BYTES and (self._at >= size or size >= 2 * LIMIT_BYTES):
                dropped = max(0, size - self._at)
                os.ftruncate(self._file, 0)
                self._at = 0
        if self._cut_line and chunk:
            chunk, self._cut_line = chunk.partition(b"\n")[2], False
        return chunk, dropped

    def close(self) -> None:
        """Let go of it; the process keeps it open."""
        with self._lock:
            os.close(self._file)
