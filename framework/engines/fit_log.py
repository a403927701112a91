"""Read llama-server's own memory plan from what it prints before it loads a model. Pure.

Its fit step builds model, context and graphs without memory behind them, prints a table of MiB per device,
and then, where that needs more than is free, tries other settings and prints a table for each. A drafter or
an embedded head is measured before, in a table of its own. Called by dry_run, line by line; only what is in
the engine's own form is believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from framework.values.device import HOST_NAME
from framework.values.measurement import EngineChoice, MeasuredRow, MeasuredTable, Measurement
from framework.values.plain_text import visible

# Time, level and tag may be missing; then the name of the function that prints.
LINE = re.compile(r"(?:\d[\d.]* (?P<level>[A-Z]) (?:\w{1,8} +)?)?(?P<source>\w{1,80}): ?(?P<text>.*)")
TABLE_SOURCE = "memory_breakdown_print"
HEADING = re.compile(r"\|\s*memory breakdown \[MiB\]")
ROW = re.compile(r"\|\s+- (?P<name>[^|]{1,200}?)\s*\|(?P<cell>[^|]{1,200})\|\s*")
N = r"\s*(\d{1,9})"
# total = free + (self = weights + context + compute) + what others hold
DEVICE_CELL = re.compile(rf"{N} ={N} \+ \({N} ={N} \+{N} \+{N}\) \+\s*-?\d{{1,20}}\s*")
HOST_CELL = re.compile(rf"{N} ={N} \+{N} \+{N}\s*")
# Of a sum of three numbers, each rounded down by itself.
LOST_BY_ROUNDING_MIB = 3

START = "getting device memory data for initial parameters"
CONTEXT = re.compile(r"context size reduced from \d{1,12} to (\d{1,12})\b")
LAYERS = re.compile(
    r"\s+- (?P<name>.{1,200}): +(?P<layers>\d{1,6}) layers(?: \( *(?P<partial>\d{1,6}) overflowing\))?,"
    r" +(?P<used>\d{1,9}) MiB used,"
)
AS_ASKED = "no changes needed"
SUCCESS = "successfully fit params"
NOT_FITTED = ("failed to fit params", "encountered an error while trying to fit")
OVER = "fitting params to free memory took"
PROJECTOR = re.compile(r"\[mtmd\] estimated .{0,40}memory usage of mmproj is (\d{1,9})(?:\.\d+)? MiB")
NO_ALLOC = re.compile(r"no_alloc\s*= (\d)")
REAL_LOAD = {"load_tensors": "loading model tensors", "llama_server": "model loaded"}
BAD_ARGUMENT = "error"
MOST_ERRORS, ERROR_LIMIT = 3, 300
MOST_ROWS, MOST_TABLES = 256, 512


@dataclass(frozen=True)
class _Table:
    rows: MeasuredTable
    used_mib: dict[str, int]
    """The engine's own sum of each device."""


class FitLog:
    """What was printed so far. With `whole` it also waits for what the fit step decides."""

    def __init__(self, *, whole: bool) -> None:
        self.errors: list[str] = []
        """The first lines that say what went wrong, fit to be shown."""
        self.loading = False
        """The engine went on to load the model for real."""
        self._whole = whole
        self._open: _Table | None = None
        self._fitting = False
        self._fitted = False
        self._no_alloc = False
        self._drafts: list[_Table] = []
        self._tables: list[_Table] = []
        self._projector_mib: int | None = None
        self._context: int | None = None
        self._layers: dict[str, tuple[int, int, int]] = {}

    def feed(self, line: str) -> bool:
        """Take a line; True when nothing more is wanted."""
        match = LINE.match(line)
        if match is None:
            return False
        source, text = match["source"], match["text"]
        if source.endswith(TABLE_SOURCE):
            self._take_row(text)
            return False
        self._close_table()
        if match["level"] == "E" or source == BAD_ARGUMENT or any(mark in text for mark in NOT_FITTED):
            self._note_error(text)
        return self._is_over(source, text)

    @property
    def has_begun(self) -> bool:
        """Whether the fit step, or a measurement before it, has printed anything."""
        return self._fitting or bool(self._drafts) or self._projector_mib is not None

    @property
    def measurement(self) -> Measurement | None:
        """The answer; None while the first table is missing."""
        self._close_table()
        if not self._tables:
            return None
        draft = self._drafts[-1].rows if self._drafts else ()
        # What it said on the way to a decision that never came is none.
        choice = self._choice() if self._fitted else None
        return Measurement(self._tables[0].rows, draft, self._projector_mib, choice)

    def _is_over(self, source: str, text: str) -> bool:
        if START in text:
            self._fitting = True
        elif self._fitting:
            if self._whole:
                self._take_choice(text)
        elif projector := PROJECTOR.search(text):
            self._projector_mib = int(projector[1])
        elif match := NO_ALLOC.match(text):
            self._no_alloc = match[1] == "1"
        elif source in REAL_LOAD and text.startswith(REAL_LOAD[source]) and not self._no_alloc:
            self.loading = True
            return True
        self._fitted = self._fitted or SUCCESS in text
        ended = any(mark in text for mark in (AS_ASKED, SUCCESS, *NOT_FITTED, OVER))
        return ended or (bool(self._tables) and not self._whole)

    def _take_choice(self, text: str) -> None:
        if match := CONTEXT.match(text):
            self._context = int(match[1])
        elif match := LAYERS.match(text):
            name = _device(match["name"])
            self._layers[name] = (int(match["layers"]), int(match["partial"] or 0), int(match["used"]))

    def _choice(self) -> EngineChoice | None:
        if not self._layers:
            return EngineChoice((), self._context) if self._context else None
        used = {name: row[2] for name, row in self._layers.items()}
        tried = reversed(self._tables)
        table = next((table.rows for table in tried if table.used_mib == used), ())
        layers = sum(row[0] for row in self._layers.values())
        partial = sum(row[1] for row in self._layers.values())
        return EngineChoice(table, self._context, layers, partial)

    def _take_row(self, text: str) -> None:
        if HEADING.match(text):
            self._close_table()
            self._open = _Table((), {})
        elif self._open is not None and (match := ROW.fullmatch(text)):
            parsed = _row(match["name"], match["cell"])
            if parsed is None or len(self._open.rows) >= MOST_ROWS:
                self._open = None  # not a table that we know
                return
            row, used_mib = parsed
            used = {row.device: used_mib} if row.free_mib is not None else {}
            self._open = _Table((*self._open.rows, row), {**self._open.used_mib, **used})

    def _close_table(self) -> None:
        table, self._open = self._open, None
        kept = self._tables if self._fitting else self._drafts
        if table is not None and table.rows and len(kept) < MOST_TABLES:
            kept.append(table)

    def _note_error(self, text: str) -> None:
        if len(self.errors) < MOST_ERRORS and text.strip():
            self.errors.append(visible(text.strip())[:ERROR_LIMIT])


def _row(name: str, cell: str) -> tuple[MeasuredRow, int] | None:
    """A row and the engine's own sum of it; None where the numbers are no sum in MiB."""
    free: int | None = None
    if match := DEVICE_CELL.fullmatch(cell):
        _, free, total, *parts = (int(number) for number in match.groups())
    elif match := HOST_CELL.fullmatch(cell):
        total, *parts = (int(number) for number in match.groups())
    else:
        return None
    if not 0 <= total - sum(parts) < LOST_BY_ROUNDING_MIB:
        return None
    device = HOST_NAME if free is None else _device(name)
    return MeasuredRow(device, _device(name), parts[0], parts[1], parts[2], free), total


def _device(name: str) -> str:
    """The engine's name of a device, without its description."""
    return visible(name.split(" (", maxsplit=1)[0].strip())
