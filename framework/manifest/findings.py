"""The list of problems while a manifest is checked. Every other module of the package adds to it.

It finds line and column, drops what would be said twice, and bounds the list: a hostile file must not
yield more problems than anybody could read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from framework.manifest.key_paths import KeyPath, dotted
from framework.values.problem import Problem, place_text

if TYPE_CHECKING:
    from framework.manifest.document import Document

Severity = Literal["error", "warning"]

# More than one screen of mistakes is read from the top; the rest is counted.
MAX_PROBLEMS = 200
LONGEST_SHOWN = 80
FEW = 4


@dataclass(frozen=True)
class Place:
    """Something in a file that a problem can point at: a key, or the value behind it."""

    document: Document
    path: KeyPath
    at: Literal["key", "value"] = "value"

    def child(self, *parts: str | int) -> Place:
        """A key or list entry below this one."""
        return Place(self.document, (*self.path, *parts))

    @property
    def key(self) -> Place:
        """The same, pointing at the key."""
        return Place(self.document, self.path, "key")

    @property
    def name(self) -> str:
        """The dotted path."""
        return dotted(self.path)

    @property
    def line_column(self) -> tuple[int, int]:
        """Both from 1; both 0 in what has no lines, such as a flag."""
        if not self.document.has_lines:
            return 0, 0
        positions = self.document.positions
        return positions.of_key(self.path) if self.at == "key" else positions.of_value(self.path)

    @property
    def location(self) -> str:
        """`serve.toml:3:7`."""
        return place_text(self.document.label, *self.line_column)


class Findings:
    """Problems in the order in which they were found, each place and message once."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._seen: set[tuple[str, int, int, str]] = set()
        self._kept: Counter[Severity] = Counter()
        self._left_out: Counter[Severity] = Counter()

    def add(
        self,
        code: str,
        place: Place,
        message: str,
        *,
        found: str = "",
        allowed: str = "",
        suggestion: str = "",
        severity: Severity = "error",
    ) -> None:
        """Note a problem at a place of a document."""
        if self._kept[severity] >= MAX_PROBLEMS:  # counted without looking up its place
            self._left_out[severity] += 1
            return
        line, column = place.line_column
        label = place.document.label
        self.add_problem(
            Problem(code, label, line, column, place.name, message, found, allowed, suggestion, severity)
        )

    def add_problem(self, problem: Problem) -> None:
        """Note a problem whose place is known already."""
        mark = (problem.file, problem.line, problem.column, problem.message)
        if mark in self._seen:
            return
        if self._kept[problem.severity] >= MAX_PROBLEMS:
            self._left_out[problem.severity] += 1
            return
        self._seen.add(mark)
        self._kept[problem.severity] += 1
        self._problems.append(problem)

    @property
    def has_errors(self) -> bool:
        """Whether anything is an error."""
        return self._kept["error"] > 0

    @property
    def is_full(self) -> bool:
        """Whether further errors are only counted; suggestions for them need not be worked out."""
        return self._kept["error"] >= MAX_PROBLEMS

    def in_order(self, files: Sequence[str]) -> tuple[Problem, ...]:
        """File after file, those of `files` first, each from top to bottom; at the end what was left out."""
        files = list(dict.fromkeys((*files, *(problem.file for problem in self._problems))))
        ordered = sorted(self._problems, key=lambda p: (files.index(p.file), p.line, p.column))
        for severity, count in self._left_out.items():
            message = f"and {count} more {severity}s; mend these first"
            ordered.append(Problem("more_problems", files[0], 1, 1, "", message, severity=severity))
        return tuple(ordered)


def shown(value: Any) -> str:
    """A found value for a message: on one line, short, typed as TOML types it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _cut(
            "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in value[:LONGEST_SHOWN]), value
        )
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        simple = len(value) <= FEW and not any(isinstance(one, list | dict) for one in value)
        return f"[{', '.join(map(shown, value))}]" if simple else f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**LONGEST_SHOWN:
        return "a number of very many digits"
    return str(value)


def _cut(start: str, whole: str) -> str:
    return f'"{start}"' if len(whole) <= LONGEST_SHOWN else f'"{start}…"'
