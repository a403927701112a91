"""`paddock check`: validate the manifest, show every problem with its place and how to fix it (01 §2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from framework.api.shapes import check_json
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import BAD_INPUT, OK
from framework.commands.local import load
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, safe, say
from framework.manifest.json_schema import manifest_schema
from framework.manifest.load import Loaded
from framework.values.problem import Problem

# A line that is longer is cut around the place of the problem.
EXCERPT_CHARS = 100

SchemaOption = Annotated[
    bool, typer.Option("--schema", help="Print the JSON Schema of the manifest for editors, check nothing.")
]


def command(
    manifest: ManifestOption = None, schema: SchemaOption = False, as_json: JsonOption = False
) -> int:
    """Show every problem of the manifest with its place."""
    if schema:
        print_json(manifest_schema())
        return OK
    settings = read_settings()
    path = manifest_path(settings, manifest)
    loaded = load(path, settings)
    if as_json:
        print_json(check_json(path, loaded.sha256, loaded.problems))
    else:
        _print(path, loaded)
    return OK if loaded.manifest is not None else BAD_INPUT


def _print(path: Path, loaded: Loaded) -> None:
    lines = _Sources()
    for problem in loaded.problems:
        _print_problem(problem, lines)
    errors = sum(problem.severity == "error" for problem in loaded.problems)
    warnings = len(loaded.problems) - errors
    if loaded.manifest is None:
        say(f"{path}: {_count(errors, 'error')}, {_count(warnings, 'warning')}", "bold red")
    else:
        models = _count(len(loaded.manifest.models), "model")
        trailer = f", {_count(warnings, 'warning')}" if warnings else ""
        say(f"{path}: ok, {models}{trailer}", "bold green")


def _print_problem(problem: Problem, lines: _Sources) -> None:
    style = "red" if problem.severity == "error" else "yellow"
    say(f"{problem.location}: {problem.severity}: {problem.message}", style)
    for line in excerpt(lines.line(problem.file, problem.line), problem.line, problem.column):
        say(line)
    facts = {"found": problem.found, "allowed": problem.allowed, "did you mean": problem.suggestion}
    for label, text in facts.items():
        if text:
            say(f"    {label}: {text}")
    say("")


def excerpt(text: str | None, line: int, column: int) -> Iterable[str]:
    """The line of a problem with a caret below its column; nothing when the line is not known."""
    if text is None:
        return []
    # Control characters grow when they are made visible, so the part before the column is measured so.
    before = _visible(text[: column - 1])
    shown = before + _visible(text[column - 1 :])
    start = max(0, len(before) - EXCERPT_CHARS // 2)
    margin = f"{line:>5} | "
    caret = " " * (len(margin) - 2) + "| " + " " * (len(before) - start) + "^"
    return [margin + shown[start : start + EXCERPT_CHARS], caret]


def _visible(text: str) -> str:
    # `safe` drops blanks at the end, which count here.
    return safe(text + "|")[:-1]


class _Sources:
    """Lines of the files that problems are in, each file read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """A line by its number from 1; None when it is not there."""
        if file not in self._files:
            self._files[file] = _read_lines(file)
        lines = self._files[file]
        return lines[number - 1] if 1 <= number <= len(lines) else None


def _read_lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
