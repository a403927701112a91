"""Printing for people and for programs. All text from engines, files and servers is hostile here.

Control characters become visible, so nothing that a model file or a log line says can drive the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.runtime.logs import clean_line

# Tables that go into a file or a pipe are not folded to the 80 columns of a terminal that is not there.
PIPE_COLUMNS = 1000


def out() -> Console:
    """The console of answers."""
    return _console(stderr=False)


def err() -> Console:
    """The console of progress and errors; programs read the other one."""
    return _console(stderr=True)


def print_json(value: Any) -> None:
    """A JSON document. ASCII only: JSON escapes are the control characters' visible form."""
    print(json.dumps(value, indent=2))


def print_json_line(value: Any) -> None:
    """One JSON document on one line, at once: for streams."""
    print(json.dumps(value, separators=(",", ":")), flush=True)


def safe(text: object) -> str:
    """One line of text without anything that a terminal would obey."""
    return clean_line(" ".join(str(text).splitlines()))


def say(text: str, style: str = "") -> None:
    """A line of an answer; folded by the terminal alone, so that copied lines stay whole."""
    out().print(Text(safe(text), style), soft_wrap=True)


def note(text: str) -> None:
    """A line of progress or advice beside the answer."""
    err().print(Text(safe(text), "dim"), soft_wrap=True)


def complain(text: str) -> None:
    """The one line of an error."""
    err().print(Text(f"paddock: {safe(text)}", "red"), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; None is shown as a dash."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if cell is None else safe(cell)) for cell in row))
    out().print(table)


def print_reason(reason: dict[str, Any], *, owner: str = "", indent: str = "") -> None:
    """A reason of 13 §1 with its remedy, after the name of what it belongs to."""
    style = {"error": "red", "warning": "yellow"}.get(reason["severity"], "")
    say(f"{indent}{owner}: {reason['message']}" if owner else f"{indent}{reason['message']}", style)
    if reason["remedy"]:
        say(f"{indent}  → {reason['remedy']}")


def problem_text(problem: dict[str, Any]) -> str:
    """A problem of 13 §9 on one line, as `Problem.sentence` has it."""
    hint = f" (did you mean {problem['suggestion']}?)" if problem["suggestion"] else ""
    return f"{problem['file']}:{problem['line']}:{problem['column']}: {problem['message']}{hint}"


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
