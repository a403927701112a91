"""Standard error with a copy in a file, or with lines of the compiled core as JSON too (`--log-file`,
`--log-jsonl`).

The core writes to the descriptor, not to a Python object, so the descriptor becomes a pipe that a thread
empties. Lines still in the pipe are lost when the process is killed. Used by process as a context manager.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

STDERR = 2
READ_BYTES = 65_536
PIPE_BYTES = 2**20
LAST_WORDS_S = 1.0
OURS = b'{"time_s": '


class StderrCopy:
    """From entry to exit. Raises OSError on entry when the file can't be opened."""

    def __init__(self, file: Path | None, *, as_json: bool) -> None:
        self._path = file
        self._as_json = as_json
        self._file: BinaryIO | None = None
        self._open = ExitStack()
        self._original = -1
        self._reader = threading.Thread(target=self._pump, name="stderr-copy", daemon=True)
        self._read_end = -1

    def __enter__(self) -> Self:
        if self._path is not None:
            # One writer, no buffer: every line is there at once.
            self._file = self._open.enter_context(self._path.open("ab", buffering=0))
        self._read_end, write_end = os.pipe()
        _enlarge(write_end)
        self._original = os.dup(STDERR)
        sys.stderr.flush()
        os.dup2(write_end, STDERR, inheritable=False)
        os.close(write_end)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stderr.flush()
        os.dup2(self._original, STDERR)  # closes the pipe's last writing end
        self._reader.join(LAST_WORDS_S)
        if not self._reader.is_alive():
            os.close(self._read_end)
            os.close(self._original)
            self._open.close()

    def _pump(self) -> None:
        rest = b""
        while data := os.read(self._read_end, READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            self._write(b"".join(self._line(line) for line in lines))
        if rest:
            self._write(self._line(rest))

    def _line(self, line: bytes) -> bytes:
        if self._as_json and not line.startswith(OURS):
            line = json.dumps({"source": "core", "text": line.decode(errors="replace")}).encode()
        return line + b"\n"

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            os.write(self._original, data)
        if self._file is not None:
            with suppress(OSError):
                self._file.write(data)


def _enlarge(pipe: int) -> None:
    """The core must not wait for the thread while it keeps Python from running."""
    with suppress(ImportError, AttributeError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl  # Linux only

        fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
