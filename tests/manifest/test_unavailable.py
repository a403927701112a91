"""What this version does not carry out is refused with its sentence, never ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.schema import NAMED_TABLES, SINGLE_TABLES
from framework.manifest.unavailable import UNAVAILABLE
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, Reading, read

COMPLETE = Path(__file__).with_name("complete_manifest.toml").read_text(encoding="utf-8")

REFUSED = {
    "access": {"full_tools": "true"},
    "engines": {"system_rocm": '"auto"'},
    "models": {
        "on_drift": '"report"',
        "voice_format": '"{voice}: {text}"',
    },
}
"""A refused value for every row of the list."""


def table_with(table: str, key: str, value: str) -> Reading:
    """A manifest with one key in a table of this kind."""
    line = f"{key} = {value}\n"
    if table == "models":
        return read(f"{MODEL}{line}")
    secret = 'key = "env:KEY"\n' if table == "access" else ""
    return read(f"[{table}.n]\n{secret}{line}", {"KEY": "k"})


def test_there_is_an_example_for_every_row() -> None:
    rows = {(row.table, row.key) for row in UNAVAILABLE}
    assert rows == {(table, key) for table, keys in REFUSED.items() for key in keys}


CASES = [pytest.param(t, k, v, id=f"{t}.{k}") for t, keys in REFUSED.items() for k, v in keys.items()]


@pytest.mark.parametrize(("table", "key", "value"), CASES)
def test_it_is_refused_with_its_sentence(table: str, key: str, value: str) -> None:
    problem = table_with(table, key, value).only
    name = {"models": "models.m"}.get(table, f"{table}.n")
    sentence = next(row.sentence for row in UNAVAILABLE if (row.table, row.key) == (table, key))
    assert (problem.code, problem.path) == ("not_available_yet", f"{name}.{key}")
    assert problem.message == f"{name}.{key}: {sentence}"
    assert "is not in this version yet; " in problem.message


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("access", "full_tools", "false"),
        ("engines", "kind", '"llama-server"'),
    ],
)
def test_what_happens_anyway_may_be_written(table: str, key: str, value: str) -> None:
    assert table_with(table, key, value).errors == []


@pytest.mark.parametrize("key", list(REFUSED["models"]))
def test_the_defaults_are_no_way_round(key: str) -> None:
    assert read(f"[defaults]\n{key} = {REFUSED['models'][key]}\n{MODEL}").paths == [f"defaults.{key}"]


@pytest.mark.parametrize(
    ("table", "key", "value", "code"),
    [
        ("models", "on_drift", '"ignore"', "bad_value"),
    ],
)
def test_its_syntax_is_checked_first(table: str, key: str, value: str, code: str) -> None:
    assert table_with(table, key, value).codes == [code]


@pytest.mark.parametrize("table", ["audio", "diffusion"])
def test_tables_of_later_versions_are_refused_as_a_whole(table: str) -> None:
    problem = read(f"[{table}]\nanything = 1").only
    assert (problem.code, problem.path) == ("not_available_yet", table)


def test_every_table_of_the_list_exists() -> None:
    assert {row.table for row in UNAVAILABLE} <= {*NAMED_TABLES, *SINGLE_TABLES}


COMPLETE_REFUSALS = [
    "engines.default.system_rocm",
    "models.smollm2.on_drift",
]


def test_the_complete_example_has_no_problem_but_the_refusals(load: Load) -> None:
    reading = load(COMPLETE, {"PADDOCK_LAPTOP_KEY": "k"}, chat_jinja="{{ messages }}")
    assert {problem.code for problem in reading.errors} == {"not_available_yet"}
    assert reading.paths == COMPLETE_REFUSALS


def test_the_complete_example_without_what_is_refused_is_a_manifest(load: Load) -> None:
    environ = {"PADDOCK_LAPTOP_KEY": "k"}
    refused = {p.line for p in load(COMPLETE, environ, chat_jinja="x").errors}
    lines = COMPLETE.split("\n")
    rest = "\n".join(line for number, line in enumerate(lines, 1) if number not in refused)
    request = load(rest, environ, chat_jinja="{{ messages }}").request("smollm2")
    assert (request.n_ctx, request.cache_type, request.gpu_layers) == (4096, ("q8_0", "q8_0"), 20)


@pytest.mark.parametrize("source", ["a.gguf", "hf:owner/repo:Q4_K_M", "hf:owner/repo/file.gguf"])
def test_a_source_may_be_a_path_or_a_hub(source: str) -> None:
    assert read(f'[models.m]\nsource = "{source}"').errors == []
