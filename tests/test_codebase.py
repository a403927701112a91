"""What holds for the whole source tree: sizes, docstrings, units, and that it speaks of itself only."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("framework", "tools", "bench", "tests")
TEXT_FOLDERS = (*CODE_FOLDERS, "templates", "static", "docs", "native", ".ci")
TOP_FILES = ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "serve.toml", "constraints.txt")
FETCHED = ROOT / "static" / "vendor"
# Files that others wrote and that are kept as they are.
QUOTED = {"tests/data/llama-server-help-b10068.txt"}

FILE_LINES = 400
FILE_LINES_HARD = 600
FUNCTION_LINES = 60
# Path, or path:function, that may be longer, and why. Nothing may be longer than the hard limit.
ALLOWED_FILES: dict[str, str] = {}
ALLOWED_FUNCTIONS: dict[str, str] = {}

UNIT = re.compile(r"(^|_)(s|ms|bytes|per_s|fraction|share|ratio|scale|seconds|b)(_|$)|_at_s$")
# Float fields that are pure numbers, and what they are.
UNITLESS: dict[str, str] = {
    "framework/dashboard/pages/slots.py:acceptance": "share of drafted tokens; the word of 13 §5",
    "framework/dashboard/charts/axes.py:low": "of whatever a chart draws",
    "framework/dashboard/charts/axes.py:high": "of whatever a chart draws",
    "framework/dashboard/charts/histogram.py:low": "of whatever a chart draws",
    "framework/dashboard/charts/histogram.py:high": "of whatever a chart draws",
    "framework/values/history.py:depth": "tokens; a mean",
    "framework/trial.py:acceptance": "share of drafted tokens; the word of 13 §5",
    "framework/values/spec_yield.py:acceptance": "share of drafted tokens; the word of 13 §5",
    "framework/planning/speculation/profit.py:tokens": "a sum that fades",
    "framework/planning/speculation/profit.py:drafted": "tokens; a sum that fades",
    "framework/planning/speculation/profit.py:accepted": "tokens; a sum that fades",
    "framework/telemetry/exposition.py:value": "of whatever a metric measures; its name has the unit",
    "framework/models/gguf_fields.py:full_attention_interval": "layers; named after the key of the file",
    "framework/planning/memory/shape.py:full_attention_interval": "layers; named after the key of the file",
    "framework/manifest/schema_engines.py:fill": "share of a device; the manifest's own word",
    "framework/planning/pools/simulation.py:hit_rate": "share of requests that found their model loaded",
    "framework/hardware/amd.py:utilisation": "share of the time in which a card works",
    "framework/hardware/nvml.py:utilisation": "share of the time in which a card works",
    "framework/values/device.py:utilisation": "share of the time in which a device works",
    "framework/values/pool.py:utilisation": "share of the time in which a device works",
    "framework/nativeserver/core.py:probability": "from 0 to 1",
    "framework/nativeserver/core.py:prompt_per_second": "tokens; the engine's own word",
    "framework/nativeserver/core.py:predicted_per_second": "tokens; the engine's own word",
    "framework/nativeserver/core.py:score": "of a reranker; higher is better",
    "framework/nativeserver/core_speculation.py:fringe": "share of drafted tokens",
    "framework/nativeserver/core_speculation.py:score": "tokens a second; the word of 11 §21",
    "framework/nativeserver/core_speculation.py:gain": "share",
    "framework/nativeserver/core_speculation.py:fringe_min": "share of drafted tokens",
    "framework/nativeserver/core_speculation.py:fringe_max": "share of drafted tokens",
    "framework/nativeserver/core_speculation.py:probe_interval": "drafts",
    "framework/nativeserver/core_speculation.py:explore_interval": "drafts",
    "framework/nativeserver/core_speculation.py:profit_min": "share",
    "framework/nativeserver/core_speculation.py:raise_": "share",
    "framework/nativeserver/core_speculation.py:lower": "share",
    "framework/nativeserver/core_speculation.py:ewma": "share of a mean that the newest value makes",
    "framework/nativeserver/core_speculation.py:baseline_interval": "cycles of the decode thread",
    "framework/nativeserver/core_speculation.py:p_min": "from 0 to 1",
    "framework/nativeserver/core_speculation.py:p_split": "from 0 to 1",
    "framework/nativeserver/core_speculation.py:draft_temperature": "of sampling",
    "framework/nativeserver/field_table.py:low": "of whatever a field measures",
    "framework/nativeserver/field_table.py:high": "of whatever a field measures",
    "framework/values/request.py:fill": "share of a device; the manifest's own word",
    "framework/manifest/schema_engines.py:min_head": "billions of parameters; the manifest's own word",
}
# A name that a field of bytes or seconds has when its unit was forgotten.
VAGUE = re.compile(r"(^|_)(timeout|duration|delay|interval|elapsed|memory|filesize)$")

# Put together from parts, so that this file does not hold what it looks for.
FOREIGN_PATHS = ("/" + "work/", "/" + "farm/", "../" + "shared", "/tmp/" + "bash_jobs", "/" + "root/")
LEFT_BEHIND = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")


def python_files(*folders: str) -> list[Path]:
    """Source files below the folders, in a stable order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    """Everything that is written by hand and kept in the repository."""
    below = [path for folder in TEXT_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    kept = [
        p
        for p in below
        if "__pycache__" not in p.parts and FETCHED not in p.parents and name(p) not in QUOTED
    ]
    return sorted(kept) + [ROOT / top for top in TOP_FILES]


def name(path: Path) -> str:
    """Path as the tables above write it."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def dataclass_fields(path: Path) -> Iterator[ast.AnnAssign]:
    """Annotated fields of classes: dataclasses and the schema of the manifest."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef):
            yield from (item for item in node.body if isinstance(item, ast.AnnAssign))


def annotation(item: ast.AnnAssign) -> set[str]:
    """The type names of a field's annotation, at its top level: `float | None` gives float and None."""
    return {part.strip() for part in ast.unparse(item.annotation).split("|")}


def lines_of(entries: Iterable[object]) -> str:
    """Failures in full, one a line."""
    return "\n".join(["", *map(str, entries)])


def test_files_are_short() -> None:
    long = []
    for path in python_files(*CODE_FOLDERS):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > (FILE_LINES_HARD if name(path) in ALLOWED_FILES else FILE_LINES):
            long.append(f"{name(path)}: {lines} lines")
    assert not long, lines_of(long)


def test_functions_are_short() -> None:
    long = []
    for path in python_files(*CODE_FOLDERS):
        for function in functions(path):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES and f"{name(path)}:{function.name}" not in ALLOWED_FUNCTIONS:
                long.append(f"{name(path)}:{function.name}: {lines} lines")
    assert not long, lines_of(long)


def test_every_module_says_what_it_is() -> None:
    files = [path for path in python_files(*CODE_FOLDERS) if parsed(path).body]
    silent = [name(path) for path in files if not ast.get_docstring(parsed(path))]
    assert not silent, lines_of(silent)


def test_fields_of_seconds_and_bytes_name_their_unit() -> None:
    missing = []
    for path in python_files("framework"):
        for item in dataclass_fields(path):
            field = ast.unparse(item.target)
            known = f"{name(path)}:{field}" in UNITLESS or UNIT.search(field)
            if not known and (
                "float" in annotation(item) or (VAGUE.search(field) and "int" in annotation(item))
            ):
                missing.append(f"{name(path)}:{item.lineno}: {field}")
    assert not missing, lines_of(missing)


@pytest.mark.parametrize(
    "table", [ALLOWED_FILES, ALLOWED_FUNCTIONS, UNITLESS], ids=["files", "functions", "units"]
)
def test_exceptions_are_still_needed(table: dict[str, str]) -> None:
    sources = {name(path): path.read_text(encoding="utf-8") for path in python_files(*CODE_FOLDERS)}
    gone = [
        entry for entry in table if entry.rpartition(":")[2] not in sources.get(entry.partition(":")[0], "")
    ]
    assert gone == []


def test_no_test_replaces_parts_of_the_product() -> None:
    forbidden = re.compile(r"(mock\.)?patch\(\s*[\"']" + "framework")
    found = [
        name(path) for path in python_files("tests") if forbidden.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_nothing_is_left_for_later() -> None:
    found = [place for path in text_files() for place in places(path, LEFT_BEHIND.search)]
    assert not found, lines_of(found)


def test_the_repository_speaks_of_itself_only() -> None:
    foreign = re.compile("|".join(re.escape(text) for text in FOREIGN_PATHS))
    found = [place for path in text_files() for place in places(path, foreign.search)]
    assert not found, lines_of(found)


def test_every_page_of_the_documentation_is_listed() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"]
    unlisted = [page for page in pages if f"]({page})" not in index]
    assert not unlisted, lines_of(unlisted)


def places(path: Path, found_in: Callable[[str], object]) -> list[str]:
    """`file:line` of every line of a text file in which something is found."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [f"{name(path)}:{number}" for number, line in enumerate(lines, 1) if found_in(line)]
