"""Output lines of an engine: a bounded ring to look at, and a file to keep (06 §8.4).

Engine output is hostile text: control characters are made visible here, once, and lines are cut, so that
whatever shows them later only has to escape for its own medium.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.runtime.log_file import LogFile
from framework.telemetry.changes import Changes
from framework.values.plain_text import visible
from framework.values.plan import REDACTED

# 06 §8.4: a start prints a few hundred lines; with room for a build that logs each tensor.
START_LINES = 20_000
READY_LINES = 2_000
# The most talkative start prints some thousand lines; an engine that goes on like this only costs the others.
LINES_PER_S = 2_000
# Longer lines carry no diagnosis; a megabyte on one line must not become a megabyte in every view.
LINE_LIMIT = 4_000
# Engines print the last characters of their key behind asterisks.
KEY_END = re.compile(r"\*{4}\S+")
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class LogLine:
    """One line with its number, which grows by one per line for the life of the buffer."""

    seq: int
    text: str


def clean_line(raw: str) -> str:
    """A line without terminal control: colour codes removed, other control characters shown as `\\x1b`."""
    return visible(ANSI.sub("", raw.rstrip())[:LINE_LIMIT].replace("\t", "    "))


class LogBuffer:
    """The lines of one process, or of a replica over its instances. Any number of readers, one event loop."""

    def __init__(
        self, *, within: LogBuffer | None = None, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`within` is the log of the replica, which shows the lines of all its processes as they come."""
        self._within = within
        self._monotonic_s = monotonic_s
        self._allowance = float(START_LINES)
        self._counted_s = monotonic_s()
        self._dropped = 0
        self._lines: deque[LogLine] = deque(maxlen=START_LINES)
        self._next = 1
        self._changes = Changes()
        self._file: LogFile | None = None
        self._fault = ""
        self.ready_at = 0
        """Number of the newest line when an engine got ready the last time."""
        self.secrets: tuple[str, ...] = ()
        """Values that never appear in a line: the launch's key and the secrets of its environment."""
        self.on_lines: Callable[[Sequence[str]], None] | None = None
        """Told of new lines, as they are kept; of the instance that is ready."""

    def open_file(self, path: Path) -> None:
        """Tee to a new file, readable by this user only. A failure to open it is no failure of the launch."""
        self.close_file()
        self._file = LogFile(path)

    def close_file(self) -> None:
        """Stop the tee."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, raw: str) -> None:
        """Add a line as the engine wrote it; blank lines are dropped."""
        self.extend([raw])

    def extend(self, raw: Sequence[str]) -> None:
        """Add lines that came together. What floods is dropped, and how much is said."""
        texts = [text for line in raw[: self._room(len(raw))] if (text := self._cleaned(line))]
        if self._dropped and self._allowance >= LINES_PER_S / 2:
            texts.append(f"... {self._dropped} lines dropped: more than {LINES_PER_S} in a second")
            self._dropped = 0
        for text in texts:
            self._add(text)
        if texts:
            self._keep(texts)
            if self.on_lines is not None:
                self.on_lines(texts)
            self._mark()

    def _mark(self) -> None:
        self._changes.mark()
        if self._within is not None:
            self._within._mark()

    def _add(self, text: str) -> None:
        self._lines.append(LogLine(self._next, text))
        self._next += 1
        if self._within is not None:
            self._within._add(text)

    def _room(self, count: int) -> int:
        """How many of `count` new lines fit into the rate; the others are counted as dropped."""
        now = self._monotonic_s()
        self._allowance = min(START_LINES, self._allowance + (now - self._counted_s) * LINES_PER_S)
        self._counted_s = now
        taken = min(count, int(self._allowance))
        self._allowance -= taken
        self._dropped += count - taken
        return taken

    def _cleaned(self, raw: str) -> str:
        # Before the line is cut: what is left of a secret is a secret.
        for secret in self.secrets:
            raw = raw.replace(secret, REDACTED)
        text = clean_line(raw)
        return KEY_END.sub(REDACTED, text) if self.secrets else text

    def shrink(self) -> None:
        """After readiness: keep only what is worth looking at from here on."""
        self.ready_at = self.newest
        self._lines = deque(self._lines, maxlen=READY_LINES)
        if self._within is not None:
            self._within.shrink()

    def expand(self) -> None:
        """Before a start: room for every start-up line."""
        self._lines = deque(self._lines, maxlen=START_LINES)
        if self._within is not None:
            self._within.expand()

    def last(self, count: int) -> list[LogLine]:
        """The newest `count` lines, oldest first."""
        return list(self._lines)[-count:] if count > 0 else []

    def after(self, seq: int) -> list[LogLine]:
        """All kept lines with a number above `seq`."""
        return [line for line in self._lines if line.seq > seq]

    @property
    def newest(self) -> int:
        """Number of the newest line, 0 when there is none."""
        return self._next - 1

    def end(self) -> None:
        """Nothing will be written any more; followers end."""
        self._changes.close()

    async def follow(self, after: int) -> AsyncGenerator[LogLine, None]:
        """Lines above `after`, then new ones as they come, until the manager ends."""
        while not self._changes.closed:
            seen = self._changes.version
            for line in self.after(after):
                after = line.seq
                yield line
            await self._changes.wait(seen)

    def _keep(self, texts: Sequence[str]) -> None:
        """Write lines to the file, and say in the lines themselves when that begins to fail, and ends to."""
        if self._file is None:
            return
        self._file.write("\n".join(texts))
        fault, self._fault = self._fault, self._file.fault
        if self._fault and self._fault != fault:
            self._add(
                f"... the log file cannot be written ({self._fault}): what follows is kept in memory only"
            )
        elif fault and not self._fault:
            self._add("... the log file is written again")


class LineSplitter:
    """Bytes of a process to lines of a log; a line without an end is cut, never collected (06 §8.4)."""

    def __init__(self, log: LogBuffer) -> None:
        self._log = log
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """The next bytes that it printed."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if lines:
            self._log.extend([line.decode(errors="replace") for line in lines])
        if len(self._rest) > LINE_LIMIT:
            self.end()

    def end(self) -> None:
        """Nothing more comes for now: what is there is a line."""
        if self._rest:
            self._log.append(self._rest.decode(errors="replace"))
            self._rest = b""
