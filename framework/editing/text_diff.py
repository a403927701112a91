"""Two texts line by line: what stays, goes and comes, with a few lines around each change. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

LineKind = Literal["same", "removed", "added", "skipped"]
AROUND_LINES = 3
# Comparing takes time by the product of both lengths; more lines than this are shown as a whole.
MOST_COMPARED_LINES = 3000


@dataclass(frozen=True)
class DiffLine:
    """One line. Numbers count from 1, None on the side that lacks it; of `skipped` the text is a count."""

    kind: LineKind
    text: str
    old_line: int | None = None
    new_line: int | None = None


def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    """The changes that lead from one text to the other; nothing where both are the same."""
    before, after = _lines(old), _lines(new)
    if before == after:
        return ()
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    lines = [DiffLine("same", text, n, n) for n, text in enumerate(before[:head], 1)]
    lines += _between(before[head : len(before) - tail], after[head : len(after) - tail], head)
    for n in range(tail):
        old_at, new_at = len(before) - tail + n, len(after) - tail + n
        lines.append(DiffLine("same", before[old_at], old_at + 1, new_at + 1))
    return tuple(_folded(lines))


def as_text(lines: Sequence[DiffLine]) -> str:
    """The lines as people know them from other tools."""
    marks: dict[LineKind, str] = {"same": " ", "removed": "-", "added": "+", "skipped": "@"}
    return "".join(f"{marks[line.kind]} {line.text}\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines as TOML has them: what other alphabets end lines with is part of one."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return number
    return min(len(before), len(after))


def _between(before: Sequence[str], after: Sequence[str], offset: int) -> Iterator[DiffLine]:
    whole = [("replace", 0, len(before), 0, len(after))]
    is_long = max(len(before), len(after)) > MOST_COMPARED_LINES
    matcher = None if is_long else SequenceMatcher(None, before, after, autojunk=False)
    blocks: Sequence[tuple[str, int, int, int, int]] = whole if matcher is None else matcher.get_opcodes()
    for kind, old_from, old_to, new_from, new_to in blocks:
        if kind == "equal":
            for step in range(old_to - old_from):
                old_line, new_line = offset + old_from + step + 1, offset + new_from + step + 1
                yield DiffLine("same", before[old_from + step], old_line, new_line)
            continue
        for n in range(old_from, old_to):
            yield DiffLine("removed", before[n], offset + n + 1, None)
        for n in range(new_from, new_to):
            yield DiffLine("added", after[n], None, offset + n + 1)


def _folded(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Only what is near a change; the rest as a count."""
    changed = [number for number, line in enumerate(lines) if line.kind != "same"]
    shown = {n for at in changed for n in range(at - AROUND_LINES, at + AROUND_LINES + 1)}
    hidden = 0
    for number, line in enumerate(lines):
        if number not in shown:
            hidden += 1
            continue
        if hidden:
            yield _skipped(hidden)
        hidden = 0
        yield line
    if hidden:
        yield _skipped(hidden)


def _skipped(number: int) -> DiffLine:
    return DiffLine("skipped", f"{number} unchanged {'line' if number == 1 else 'lines'}")
