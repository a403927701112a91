"""Two texts line by line, as rows of a page. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.editing.text_diff import DiffLine, LineKind, diff_lines

MARKS: dict[LineKind, str] = {"same": " ", "removed": "-", "added": "+", "skipped": "⋯"}
# A browser takes more, a reader does not.
MOST_LINES = 2000


@dataclass(frozen=True)
class DiffRow:
    """One line; numbers are texts, empty on the side that lacks it."""

    kind: str
    mark: str
    old_line: str
    new_line: str
    text: str


@dataclass(frozen=True)
class TextChanges:
    """What one text has that the other lacks. `counts` is both in words; `hidden` lines are not shown."""

    label: str
    counts: str
    rows: tuple[DiffRow, ...]
    hidden: int


def text_changes(label: str, old: str, new: str) -> TextChanges:
    """The changes from `old` to `new`."""
    lines = diff_lines(old, new)
    added = sum(line.kind == "added" for line in lines)
    removed = sum(line.kind == "removed" for line in lines)
    counts = f"{added} added, {removed} removed" if lines else "no difference"
    rows = tuple(_row(line) for line in lines[:MOST_LINES])
    return TextChanges(label, counts, rows, max(0, len(lines) - MOST_LINES))


def _row(line: DiffLine) -> DiffRow:
    return DiffRow(
        line.kind,
        MARKS[line.kind],
        "" if line.old_line is None else str(line.old_line),
        "" if line.new_line is None else str(line.new_line),
        line.text,
    )
