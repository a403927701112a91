"""Log lines on standard error, written by a thread: what reads them may be slow, or stand still.

Set up by app. A terminal that was halted with Ctrl-S, or a full pipe, must hold up no request, and a line for
each request must not cost a system call on the event loop. Lines that come together are written together.
Lines hold text from files, engines and clients: control characters are made visible.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import IO, cast

from rich.console import Console as RichConsole
from rich.text import Text

from framework.runtime.logs import clean_line
from framework.standard_streams import LastingErrors

# A reader that leaves, as in `paddock up 2>&1 | head`, or a full disk below the log: serving goes on.
TERMINAL = RichConsole(file=cast(IO[str], LastingErrors()), highlight=False)
# Nobody sees that a line is late by so much, and a hundred lines are one.
GATHER_S = 0.05
# So many lines wait for a reader that stands still; later ones are counted instead.
MOST_WAITING = 10_000
# The end of the process waits no longer for such a reader.
FLUSH_S = 1.0


class CleanFormatter(logging.Formatter):
    """Time in UTC, level, text; one line, whatever is in the text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  name of the base class
        """The line without terminal control; a trace that follows keeps its lines."""
        return clean_line(super().formatMessage(record))


class LogLines(logging.Handler):
    """Hands every record to a thread, which prints it. Never waits, but for `flush`."""

    def __init__(self, terminal: RichConsole = TERMINAL) -> None:
        super().__init__()
        self._terminal = terminal
        self._work = threading.Condition()
        self._waiting: deque[logging.LogRecord] = deque()
        self._lost = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record soon."""
        try:
            # What the arguments are may change until it is written.
            record.msg, record.args = record.getMessage(), None
        except Exception:  # noqa: BLE001  as every handler: a line that is wrong is no reason to end
            self.handleError(record)
            return
        with self._work:
            if len(self._waiting) >= MOST_WAITING:
                self._lost += 1
                return
            self._waiting.append(record)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="paddock-log", daemon=True)
                self._thread.start()
            elif len(self._waiting) == 1:
                self._work.notify_all()

    def flush(self) -> None:
        """Wait until everything is printed, within a bound."""
        with self._work:
            self._work.notify_all()
            self._work.wait_for(lambda: not self._waiting and not self._is_writing, FLUSH_S)

    def _run(self) -> None:
        while True:
            with self._work:
                self._work.wait_for(lambda: self._waiting)
            time.sleep(GATHER_S)
            with self._work:
                records, self._waiting = self._waiting, deque()
                lost, self._lost = self._lost, 0
                self._is_writing = True
            self._print(records, lost)
            with self._work:
                self._is_writing = False
                self._work.notify_all()

    def _print(self, records: deque[logging.LogRecord], lost: int) -> None:
        lines = []
        for record in records:
            try:
                lines.append(self.format(record))
            except Exception:  # noqa: BLE001  one line must not end all that follow
                self.handleError(record)
        if lost:
            lines.append(f"{lost} further log lines were dropped, because nothing took those before them.")
        if self._terminal.is_terminal:
            # Above the bars, through the same terminal, so that neither tears the other apart.
            self._terminal.print(Text("\n".join(lines)), soft_wrap=True)
        else:
            self._terminal.file.write("\n".join([*lines, ""]))
            self._terminal.file.flush()


def show(line: str) -> None:
    """A line of our own, behind all log lines so far."""
    flush()
    TERMINAL.print(Text(line), soft_wrap=True)


def flush() -> None:
    """Wait until all log lines are out, within a bound: before a process ends at once."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LogLines):
            handler.flush()


def set_up_logging(*, debug: bool) -> None:
    """Log lines on standard error; those of libraries only when they warn."""
    # No line shows these, and each is asked for with every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = LogLines()
    handler.setFormatter(CleanFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("framework").setLevel(logging.DEBUG if debug else logging.INFO)
