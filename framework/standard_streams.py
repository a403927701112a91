"""The three standard streams, however the caller left them: closed, broken, or on a full disk.

Used by `__main__` before anything else and by whatever prints. Imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

STANDARD_DESCRIPTORS = (0, 1, 2)


def prepare() -> None:
    """Put `/dev/null` in place of each standard stream that is closed; let any character be printed.

    Without it the next file or socket would get the number of the stream, and what is printed.
    """
    for descriptor in STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is this one: those below it are open by now. Programs that are started
            # get it too, as they would get any other standard stream.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # Python has None for a stream that was closed when it started.
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape instead of a fault.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def discard(stream: TextIO) -> None:
    """Send everything that is still written to a stream nowhere: nobody reads it, or it takes no more.

    What its buffer holds goes the same way, so that the end of the process does not try to write it again.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def flush() -> None:
    """Write what is left in the buffers; what cannot be written is dropped."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard(stream)


class LastingErrors:
    """Standard error as a file that never fails: a reader or terminal that is gone is no reason to end.

    For a console that outlives them, as that of `up` does; rich keeps what it could not write, without end.
    """

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError):
            return sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what can be flushed."""
        with suppress(OSError):
            sys.stderr.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return sys.stderr.isatty()

    def fileno(self) -> int:
        """The descriptor. Raises OSError when there is none."""
        return sys.stderr.fileno()

    @property
    def encoding(self) -> str:
        """How text becomes bytes."""
        return sys.stderr.encoding


def _stream(descriptor: int, mode: str) -> TextIO:
    return open(descriptor, mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]
