"""Places of keys and values: wherever tomllib finds something, the scanner knows where it stands."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from framework.manifest.positions import MAX_DEPTH, scan
from tests.manifest.toml_writer import documents, paths_of


def parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        event("not TOML")
        assume(False)
        raise


# Drawing whole documents is slow; three hundred at a time were run while the scanner was written.
@settings(max_examples=30)
@given(documents())
def test_everything_that_tomllib_finds_stands_where_the_scanner_says(text: str) -> None:
    data = parsed(text)
    found = scan(text)
    assert found.duplicates == []
    for path, value in paths_of(data):
        if path in found.values:
            start, end = found.values[path]
            assert repr(tomllib.loads(f"again = {text[start:end]}")["again"]) == repr(value)
        else:
            assert isinstance(value, dict | list)
        if isinstance(path[-1], str):
            start, end = found.keys[path]
            assert tomllib.loads(f"{text[start:end]} = 1") == {path[-1]: 1}
        else:
            assert path in found.values or path in found.keys


@settings(max_examples=100)
@given(st.text(alphabet="ab=.[]{}\"'\\\n# ,1é", max_size=60))
def test_any_text_can_be_scanned(text: str) -> None:
    scan(text)


PLACES = [
    pytest.param("a = 1", ("a",), (1, 1), (1, 5), id="bare"),
    pytest.param("\n\n  a  =  1", ("a",), (3, 3), (3, 9), id="indented"),
    pytest.param("a.b.c = 1", ("a", "b", "c"), (1, 5), (1, 9), id="dotted"),
    pytest.param("a.b.c = 1", ("a", "b"), (1, 3), (1, 3), id="middle of dotted"),
    pytest.param("[a.b]\nc = 1", ("a", "b"), (1, 4), (1, 4), id="header"),
    pytest.param("[a.b]\nc = 1", ("a", "b", "c"), (2, 1), (2, 5), id="below header"),
    pytest.param("[[a]]\n[[a]]\nb = 1", ("a", 1, "b"), (3, 1), (3, 5), id="second of an array of tables"),
    pytest.param("[[a]]\n[a.b]\nc = 1", ("a", 0, "b", "c"), (3, 1), (3, 5), id="table below an array"),
    pytest.param("a = { b = { c = 1 } }", ("a", "b", "c"), (1, 13), (1, 17), id="inline"),
    pytest.param("a = [\n 1, # x\n  2 ]", ("a", 1), (3, 3), (3, 3), id="list over lines"),
    pytest.param('"a.b" = 1', ("a.b",), (1, 1), (1, 9), id="quoted key"),
    pytest.param('"\\u0061" = 1', ("a",), (1, 1), (1, 12), id="escaped key"),
    pytest.param("ab = 'é🦙'\nc = 1", ("c",), (2, 1), (2, 5), id="wide characters"),
    pytest.param("a = '''\nb = 1\n'''\nc = 2", ("c",), (4, 1), (4, 5), id="behind a long string"),
    pytest.param('a = """x"""""\nc = 2', ("c",), (2, 1), (2, 5), id="quotes at the end of a long string"),
]


@pytest.mark.parametrize(("text", "path", "key", "value"), PLACES)
def test_places_count_lines_and_characters_from_one(
    text: str, path: tuple[str | int, ...], key: tuple[int, int], value: tuple[int, int]
) -> None:
    found = scan(text)
    assert (found.of_key(path), found.of_value(path)) == (key, value)


def test_a_path_that_is_not_written_stands_at_the_nearest_table() -> None:
    assert scan("\n[models.m]\nslots = 1").of_value(("models", "m", "source")) == (2, 9)


def test_an_unknown_path_stands_at_the_start() -> None:
    assert scan("a = 1").of_key(("b",)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        pytest.param("[a]\nx = 1\n[a]\ny = 2", ("a",), 3, id="table"),
        pytest.param("a = 1\na = 2", ("a",), 2, id="key"),
        pytest.param("[a.b]\n[c]\n[a]\nb = 1", ("a", "b"), 4, id="key that is a table"),
        pytest.param("a = { b = 1, b = 2 }", ("a", "b"), 1, id="key of an inline table"),
        pytest.param("[a]\n[b]\n[a]\n[c]\n[a.d]", ("a",), 3, id="table among others"),
    ],
)
def test_what_is_declared_twice_is_found(text: str, name: tuple[str, ...], line: int) -> None:
    found = scan(text)
    assert [duplicate.path for duplicate in found.duplicates] == [name]
    assert found.line_column(found.duplicates[0].second.start)[0] == line


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = " + "[" * 5000, id="lists"),
        pytest.param("a = " + "{ a = " * 5000, id="inline tables"),
        pytest.param(".".join("a" * 5000) + " = 1", id="dotted key"),
        pytest.param("[" + ".".join("a" * 5000) + "]", id="header"),
    ],
)
def test_nesting_without_end_is_noticed(text: str) -> None:
    assert scan(text).too_deep is not None


def test_nesting_within_reason_is_fine() -> None:
    assert scan("a = " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)).too_deep is None
