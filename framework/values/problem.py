"""One finding in a manifest: where it is, what was found, what is allowed (01 §2.1, 13 §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Problem:
    """A finding with its place. `path` is dotted.

    `line` and `column` count from 1. For a flag or a variable `file` is its name, and both are 0.
    """

    code: str
    file: str
    line: int
    column: int
    path: str
    message: str
    found: str = ""
    allowed: str = ""
    suggestion: str = ""
    severity: Literal["error", "warning"] = "error"

    @property
    def location(self) -> str:
        """`serve.toml:3:7`, the form editors and terminals make clickable."""
        return place_text(self.file, self.line, self.column)

    @property
    def sentence(self) -> str:
        """The message with its place and suggestion, on one line."""
        hint = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{self.location}: {self.message}{hint}"


def place_text(file: str, line: int, column: int) -> str:
    """A place, without the numbers where there are no lines."""
    return f"{file}:{line}:{column}" if line else file


def as_json(problem: Problem) -> dict[str, Any]:
    """The shape of 13 §9."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "message": problem.message,
        "found": problem.found,
        "allowed": problem.allowed,
        "suggestion": problem.suggestion,
    }
