"""Log lines of the server: their form, and which appear (12 §1.6). Called by process.

The form is llama-server's (15 §1), so that one reader serves both: time since the start, level, source, text.
Lines of the compiled core go to the same stream by themselves.
"""

from __future__ import annotations

import json
import logging
import sys

from framework.nativeserver.settings import LogOptions
from framework.values.plain_text import visible, visible_lines

TRACE = 15
"""Between debugging and information, as llama-server's level of that name."""
NOTHING = logging.CRITICAL + 1
THRESHOLDS = (NOTHING, logging.ERROR, logging.WARNING, logging.INFO, TRACE, logging.DEBUG)
ROOT = "framework.nativeserver"
LIBRARIES = ("uvicorn", "asyncio")
COLORS = {"W": "\x1b[33m", "E": "\x1b[31m"}
PLAIN = "\x1b[0m"
TAG = "srv"


class Lines(logging.Formatter):
    """One event as a line; only a trace of a fault of ours has more."""

    def __init__(self, options: LogOptions, *, is_colored: bool) -> None:
        super().__init__()
        self._options = options
        self._is_colored = is_colored

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        text = visible(record.getMessage())
        if record.exc_info:
            text = f"{text}\n{visible_lines(self.formatException(record.exc_info))}"
        source = record.name.rpartition(".")[2]
        level = letter(record.levelno)
        if self._options.jsonl:
            seconds = round(record.relativeCreated / 1000, 6)
            return json.dumps({"time_s": seconds, "level": level, "source": source, "text": text})
        time = f"{clock(record.relativeCreated)} " if self._options.timestamps else ""
        prefix = f"{level} {TAG}  {source}: " if self._options.prefix else ""
        line = f"{time}{prefix}{text}"
        return f"{COLORS[level]}{line}{PLAIN}" if self._is_colored and level in COLORS else line


def letter(level: int) -> str:
    """E, W, I, T or D."""
    steps = ((logging.ERROR, "E"), (logging.WARNING, "W"), (logging.INFO, "I"), (TRACE, "T"))
    return next((name for least, name in steps if level >= least), "D")


def clock(elapsed_ms: float) -> str:
    """Minutes, seconds, milliseconds and microseconds since the start: `0.01.234.567`."""
    milliseconds, micros = divmod(max(0, round(elapsed_ms * 1000)), 1000)
    seconds, millis = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}.{seconds:02}.{millis:03}.{micros:03}"


def threshold(options: LogOptions, verbosity: int) -> int:
    """Least level of `logging` that is shown."""
    return NOTHING if options.disabled else THRESHOLDS[min(verbosity, len(THRESHOLDS) - 1)]


def install(options: LogOptions, verbosity: int) -> None:
    """Send the lines of this package, and warnings of what it is built on, to standard error."""
    is_colored = options.colors == "on" or (options.colors == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(options, is_colored=is_colored and not options.jsonl))
    least = threshold(options, verbosity)
    logging.raiseExceptions = False  # a log that takes no more is no reason to end
    logging.getLogger(ROOT).setLevel(least)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(max(least, logging.WARNING))
    for name in (ROOT, *LIBRARIES):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
