"""Printing for people and for programs. All text from engines, files and servers is hostile here.

Control characters become visible, so nothing that a model file or a log line says can drive the terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TextIO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.standard_streams import LastingErrors, discard
from framework.values.json_bytes import sendable
from framework.values.plain_text import visible
from framework.values.problem import place_text

# Tables that go into a file or a pipe are not folded to the 80 columns of a terminal that is not there.
PIPE_COLUMNS = 1000
LINE_END = re.compile(r"\r\n|\r|\n")
TAB = "    "


class AnswerConsole(Console):
    """A console whose reader may leave: the command goes on, and ends as if everything had been read."""

    def on_broken_pipe(self) -> None:
        """Print to nobody from now on."""
        discard(sys.stdout)


def out() -> Console:
    """The console of answers."""
    return AnswerConsole(file=sys.stdout, **_options(sys.stdout))


def err() -> Console:
    """The console of progress and errors, which never fails; programs read the other one."""
    return Console(file=cast(IO[str], LastingErrors()), **_options(sys.stderr))


def print_json(value: Any) -> None:
    """A JSON document. ASCII only: JSON escapes are the control characters' visible form."""
    try:
        print(json.dumps(sendable(value), indent=2), flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def print_json_line(value: Any) -> None:
    """One JSON document on one line, at once: for streams. Raises BrokenPipeError when nobody reads."""
    print(json.dumps(sendable(value), separators=(",", ":")), flush=True)


def safe(text: object) -> str:
    """One line of text without anything that a terminal would obey."""
    return visible(LINE_END.sub(" ", str(text).rstrip()).replace("\t", TAB))


def say(text: str, style: str = "", *, code: str = "") -> None:
    """A line of an answer, with the code of what it says; folded by the terminal alone, so that copied lines
    stay whole."""
    line = Text.assemble((safe(text), style), (safe(_marked("", code)), "dim"))
    out().print(line, soft_wrap=True)


def with_code(text: str, reason: Mapping[str, Any] | None) -> str:
    """A sentence with the code of its reason, under which docs/reasons.md explains it."""
    return text if reason is None else _marked(text, str(reason["code"]))


def _marked(text: str, code: str) -> str:
    return f"{text} [{code}]" if code else text


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
    """A reason of 13 §1 with its code and its remedy, after the name of what it belongs to."""
    style = {"error": "red", "warning": "yellow"}.get(reason["severity"], "")
    text = f"{indent}{owner}: {reason['message']}" if owner else f"{indent}{reason['message']}"
    say(text, style, code=reason["code"])
    if reason["remedy"]:
        say(f"{indent}  → {reason['remedy']}")


def problem_text(problem: dict[str, Any]) -> str:
    """A problem of 13 §9 on one line, as `Problem.sentence` has it, with its code."""
    hint = f" (did you mean {problem['suggestion']}?)" if problem["suggestion"] else ""
    place = place_text(problem["file"], problem["line"], problem["column"])
    return with_code(f"{place}: {problem['message']}{hint}", problem)


def _options(stream: TextIO) -> dict[str, Any]:
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    return {"width": width, "markup": False, "highlight": False, "emoji": False}
