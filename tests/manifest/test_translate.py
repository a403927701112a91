"""Pydantic's errors never reach anybody: each has a sentence of ours, with place, found and allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from framework.manifest.known_keys import table_class
from framework.manifest.schema import NAMED_TABLES, SINGLE_TABLES
from framework.manifest.table import Table
from framework.manifest.translate import CODES, UNKNOWN_KEY
from tests.manifest.reading import MODEL, read, read_model

WRONG_VALUES: list[Any] = [
    *[0, -1, 1, 10**30, 1.5, float("nan"), float("inf"), True, "", "x", "5", "x" * 5000, "a\nb", "a\0b"],
    *[[], [1], ["x"], [[]], [{}], ["a\nb"], {}, {"x": 1}, {"a b": "x"}, {"a": {"b": []}}, date(2026, 1, 1)],
]
JARGON = ("Input should", "valid", "pydantic", "type=", "None", "ValidationError", "Value error", "dict")


def tables_below(table: type[Table]) -> Iterator[type[Table]]:
    yield table
    for field in table.model_fields.values():
        inner = table_class(field.annotation)
        if inner is not None:
            yield from tables_below(inner)


ALL_TABLES = {
    one.__name__: one
    for table in (*NAMED_TABLES.values(), *SINGLE_TABLES.values())
    for one in tables_below(table)
}


def error_types(table: type[Table]) -> set[str]:
    """Types of all errors that pydantic raises for wrong values of every key of a table."""
    found = set()
    for key in (*table.model_fields, "no such key"):
        for value in WRONG_VALUES:
            try:
                table.model_validate({key: value})
            except ValidationError as error:
                found |= {one["type"] for one in error.errors() if "must_be" not in one.get("ctx", {})}
    return found


@pytest.mark.parametrize("table", [pytest.param(one, id=name) for name, one in sorted(ALL_TABLES.items())])
def test_every_error_that_a_table_can_raise_has_a_translation(table: type[Table]) -> None:
    assert error_types(table) <= {*CODES, UNKNOWN_KEY}


def test_no_translation_is_for_an_error_that_cannot_happen() -> None:
    assert set().union(*map(error_types, ALL_TABLES.values())) == {*CODES, UNKNOWN_KEY}


def keys_with_values() -> Iterator[tuple[str, str]]:
    for kind, table in {**NAMED_TABLES, **SINGLE_TABLES}.items():
        header = f"{kind}.n" if kind in NAMED_TABLES else kind
        for key in table.model_fields:
            for value in (5, -1, 1.5, True, "x", "", [], [1], {"x": 1}):
                yield f"[{header}]\n", f"{key} = {toml(value)}"


def toml(value: Any) -> str:
    return "{ x = 1 }" if isinstance(value, dict) else json.dumps(value)


@pytest.mark.parametrize("chunk", range(8))
def test_sentences_are_for_people(chunk: int) -> None:
    for header, line in list(keys_with_values())[chunk::8]:
        for problem in read(header + line).errors:
            assert not any(word in problem.message for word in JARGON), problem.message
            assert problem.path, problem.message
            assert problem.message.startswith((problem.path, "[")), problem.message


def test_a_wrong_type_says_what_was_found_and_what_is_allowed() -> None:
    problem = read_model('slots = "four"').only
    assert problem.message == 'models.m.slots must be a whole number from 1 to 256, but is "four"'
    assert (problem.found, problem.allowed) == ('"four"', "a whole number from 1 to 256")
    assert (problem.line, problem.column) == (3, 9)


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ('slots = "4"', "4"),
        ('rollback = "True"', "true"),
        ('load = "at_start"', '"at-start"'),
        ('flash_attention = "of"', '"off"'),
        ('kv_cache = "q8"', '"q8_0"'),
        ('context = "8k"', "8192"),
        ('context = "4096"', "4096"),
        ("timeout = { load = 10 }", '"10s"'),
    ],
)
def test_a_value_that_means_something_is_suggested_in_the_right_form(line: str, suggestion: str) -> None:
    assert read_model(line).only.suggestion == suggestion


def test_an_error_in_a_short_form_points_at_what_is_written() -> None:
    problem = read_model('kv_cache = "q9"').only
    assert (problem.path, problem.line, problem.column) == ("models.m.kv_cache", 3, 12)


def test_an_error_in_a_list_names_the_entry() -> None:
    problem = read_model("aliases = [\n  'a',\n  5\n]").only
    assert (problem.path, problem.line, problem.column) == ("models.m.aliases[1]", 5, 3)


def test_a_key_that_is_no_variable_is_pointed_at_itself() -> None:
    problem = read_model('environment = { A = "x", "B-C" = "y" }').only
    assert (problem.path, problem.line, problem.column) == ("models.m.environment.B-C", 3, 26)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[access.a]\nkey = "hunter2"', id="key"),
        pytest.param('[access]\nkey = "hunter2"', id="key without a name"),
        pytest.param('[access.a]\nkey = ["hunter2"]', id="key in a list"),
        pytest.param('[server.tls]\ncertificate = "hunter2"\nkey = "hunter2"', id="tls"),
        pytest.param(f'{MODEL}environment = {{ A = ["hunter2"], "B C" = "x" }}', id="variable"),
        pytest.param('[access.a]\nkeyy = "hunter2"', id="misspelt key"),
        pytest.param('access = "hunter2"', id="no table at all"),
    ],
)
def test_secrets_are_never_repeated(text: str) -> None:
    reading = read(text)
    assert reading.errors
    assert "hunter2" not in repr(reading.loaded)


def test_all_problems_are_reported_at_once() -> None:
    text = (
        "listen = 1\n[server]\nlisten = 5\nfoo = 1\n[models.a]\nslots = 0\ncontext = -1\nbatch = { x = 1 }\n"
    )
    assert read(text).paths == [
        "listen",
        "server.listen",
        "server.foo",
        "models.a.source",
        "models.a.slots",
        "models.a.context",
        "models.a.batch.x",
    ]


def test_a_flood_of_problems_is_cut_and_counted() -> None:
    reading = read("".join(f"key{n} = 1\n" for n in range(5000)))
    assert len(reading.loaded.problems) == 201
    assert reading.loaded.problems[-1].message == "and 4800 more errors; mend these first"


def test_warnings_do_not_crowd_out_errors() -> None:
    models = "".join(f'[models.m{n}]\nsource = "x"\n' for n in range(500))
    reading = read(f"{models}slots = 0\n")
    assert reading.only.path == "models.m499.slots"
    assert reading.loaded.problems[-1].message == "and 300 more warnings; mend these first"


def test_a_command_line_where_a_list_should_be_is_not_repeated() -> None:
    problem = read_model('engine_args = "--api-key S3CR3T"').only
    assert problem.code == "wrong_type"
    assert "S3CR3T" not in repr(problem)
