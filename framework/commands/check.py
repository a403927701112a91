"""`paddock check`: validate the manifest, show every problem with its place and how to fix it (01 §2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from framework.api.shapes import check_json
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import BAD_INPUT, OK
from framework.commands.local import load
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, safe, say
from framework.manifest.document import BYTE_ORDER_MARK
from framework.manifest.json_schema import manifest_schema
from framework.manifest.load import Loaded
from framework.values.problem import Problem
from framework.values.units_text import counted

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
        show(path, loaded)
    return OK if loaded.manifest is not None else BAD_INPUT


def show(path: Path, loaded: Loaded) -> None:
    """Print every problem with its line, then how many there are."""
    lines = _Sources(loaded.sources)
    for problem in loaded.problems:
        _print_problem(problem, lines)
    errors = sum(problem.severity == "error" for problem in loaded.problems)
    warnings = len(loaded.problems) - errors
    if loaded.manifest is None:
        say(f"{path}: {counted(errors, 'error')}, {counted(warnings, 'warning')}", "bold red")
    else:
        models = counted(len(loaded.manifest.models), "model")
        trailer = f", {counted(warnings, 'warning')}" if warnings else ""
        say(f"{path}: ok, {models}{trailer}", "bold green")


def _print_problem(problem: Problem, lines: _Sources) -> None:
    style = "red" if problem.severity == "error" else "yellow"
    say(f"{problem.location}: {problem.severity}: {problem.message}", style, code=problem.code)
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
    """Lines of the files that problems are in, as they were when they were checked."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """A line by its number from 1; None when it is not there."""
        if file not in self._files:
            self._files[file] = _lines(self._sources.get(file, b""))
        lines = self._files[file]
        return lines[number - 1] if 1 <= number <= len(lines) else None


def _lines(content: bytes) -> list[str]:
    """The lines of a text; none of what was not read or is no text."""
    if not content or b"\0" in content:
        return []
    text = content.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
    return text.replace("\r\n", "\n").split("\n")
