"""The file that keeps what one start of an engine prints: private, bounded, and safe to rotate from outside.

Full, it becomes `NAME.log.1` and a new one begins, so that the newest lines are always kept. Who renames,
deletes or truncates it, as logrotate does, is followed. Belongs to a runtime.logs.LogBuffer; writes on its
event loop, some lines at a time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from framework.runtime.private import make_private

PRIVATE_FILE = 0o600
FILE_LIMIT_BYTES = 8 * 2**20
# With the limit above and its older half: what one replica may keep on disk. The last starts explain a night.
STARTS_KEPT = 10
OLDER = ".1"
# How soon a file that was moved away is followed; a look costs two calls of the system.
LOOK_S = 1.0
# A full disk is looked at again after this.
RETRY_S = 10.0
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class LogFile:
    """One file, from its opening to `close`."""

    def __init__(
        self, path: Path, *, limit_bytes: int = FILE_LIMIT_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Make it, and room for it in its folder. A file that cannot be made is tried again later."""
        self._path = path
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._handle: int | None = None
        self._looked_s = self._failed_s = clock()
        self.fault = ""
        """Why nothing is kept at the moment; empty while all is well."""
        try:
            make_private(path.parent)
            _remove_oldest(path.parent)
        except OSError as error:
            self._fail(error)
            return
        self._open(os.O_EXCL)

    def write(self, text: str) -> None:
        """Append lines. What cannot be written is dropped, and `fault` says why."""
        now_s = self._clock()
        if self._handle is None and now_s - self._failed_s >= RETRY_S:
            self._open()
        elif self._handle is not None and now_s - self._looked_s >= LOOK_S:
            self._look(now_s)
        if self._handle is None:
            return
        try:
            _write_all(self._handle, f"{text}\n".encode(errors="replace"))
            if os.fstat(self._handle).st_size >= self._limit_bytes:
                self._rotate()
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Nothing more is written."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _look(self, now_s: float) -> None:
        """Go on in a file of this name where somebody took the old one away."""
        self._looked_s = now_s
        try:
            there = self._path.stat(follow_symlinks=False)
        except OSError:
            there = None
        try:
            ours = os.fstat(self._handle) if self._handle is not None else None
        except OSError:
            ours = None
        if there is None or ours is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            self.close()
            self._open()

    def _rotate(self) -> None:
        self.close()
        self._path.replace(self._path.with_name(self._path.name + OLDER))
        self._open()

    def _open(self, exclusive: int = 0) -> None:
        try:
            self._handle = os.open(self._path, FLAGS | os.O_CREAT | exclusive, PRIVATE_FILE)
            self.fault = ""
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.close()
        self._failed_s = self._clock()
        self.fault = error.strerror or type(error).__name__


def _write_all(handle: int, data: bytes) -> None:
    """A disk that fills takes the beginning of a line and refuses the rest."""
    while data:
        data = data[os.write(handle, data) :]


def _remove_oldest(folder: Path) -> None:
    """Make room for one more start."""
    files = sorted(folder.glob("*.log"), key=lambda file: file.lstat().st_mtime)
    for file in files[: max(0, len(files) - STARTS_KEPT + 1)]:
        for part in (file, file.with_name(file.name + OLDER)):
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
