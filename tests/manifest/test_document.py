"""Reading a file as TOML: encodings, limits, syntax errors with their places. Nothing raises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.manifest.document import MAX_FILE_BYTES
from framework.manifest.load import check_text, load_manifest
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, Reading, read


def test_a_byte_order_mark_is_no_error(load: Load) -> None:
    assert "m" in load(b"\xef\xbb\xbf" + MODEL.encode()).manifest.models


def test_a_byte_order_mark_moves_no_column(load: Load) -> None:
    assert (load(b"\xef\xbb\xbfx = 1").only.line, load(b"\xef\xbb\xbfx = 1").only.column) == (1, 1)


def test_windows_line_ends_are_no_error(load: Load) -> None:
    assert "m" in load(MODEL.replace("\n", "\r\n")).manifest.models


def test_windows_line_ends_move_no_place(load: Load) -> None:
    problem = load('[models.m]\r\nsource = "m.gguf"\r\nslots = 0\r\n').only
    assert (problem.line, problem.column) == (3, 9)


def test_bytes_that_are_not_utf8_are_named_with_their_place(load: Load) -> None:
    problem = load(MODEL.encode() + b"# caf\xe9\n").only
    assert (problem.code, problem.line, problem.column) == ("not_utf8", 3, 6)
    assert "0xe9" in problem.message


def test_a_lone_surrogate_in_edited_text_is_not_utf8() -> None:
    assert read("# \ud800").only.code == "not_utf8"


def test_a_file_that_is_too_large_names_the_limit(load: Load) -> None:
    problem = load(b"#" * (5 * 2**20)).only
    assert (problem.code, problem.allowed) == ("too_large", "at most 1 MiB")


def test_a_file_of_just_the_limit_is_read(load: Load) -> None:
    assert load(b"#" * MAX_FILE_BYTES).manifest.models == {}


def test_a_missing_file_is_a_problem_at_its_start(tmp_path: Path) -> None:
    problem = Reading(load_manifest(tmp_path / "serve.toml", {})).only
    assert (problem.code, problem.line, problem.column) == ("file_missing", 1, 1)
    assert "does not exist" in problem.message


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        pytest.param("[models.m]\rsource = 'm'\r", 1, 11, id="all lines"),
        pytest.param("a = 1\n# b\rc\n", 2, 4, id="in a comment"),
        pytest.param("a = 'b\r'\n", 1, 7, id="in a text"),
        pytest.param("a = [1,\r", 1, 8, id="before the end"),
    ],
)
def test_a_carriage_return_alone_is_named_with_its_place(text: str, line: int, column: int) -> None:
    problem = read(text).only
    assert (problem.line, problem.column) == (line, column)
    assert "carriage return" in problem.message


def test_an_error_before_a_carriage_return_is_told_as_what_it_is() -> None:
    assert "= is missing" in read("a 1\n# b\rc\n").only.message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(load: Load, encoding: str) -> None:
    problem = load(MODEL.encode(encoding)).only
    assert (problem.code, problem.allowed) == ("not_utf8", "UTF-8 text")
    assert "UTF-16" in problem.message


def test_a_problem_of_the_file_does_not_repeat_its_name(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    assert Reading(load_manifest(path, {})).only.sentence == f"{path}:1:1: the file does not exist"


def test_the_text_of_every_file_is_kept_for_excerpts(load: Load, tmp_path: Path) -> None:
    loaded = load('include = ["b.toml", "c.toml"]', b_toml=b"\xff", c_toml="x = 1").loaded
    assert loaded.sources == {
        f"{tmp_path}/serve.toml": b'include = ["b.toml", "c.toml"]',
        f"{tmp_path}/b.toml": b"\xff",
        f"{tmp_path}/c.toml": b"x = 1",
    }


def test_a_directory_is_no_manifest(tmp_path: Path) -> None:
    assert Reading(load_manifest(tmp_path, {})).only.code in ("not_a_file", "unreadable")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "serve.toml")
    assert Reading(load_manifest(tmp_path / "serve.toml", {})).only.code == "not_a_file"


def test_an_endless_device_is_refused() -> None:
    assert Reading(load_manifest(Path("/dev/zero"), {})).only.code == "not_a_file"


def test_a_path_that_no_file_can_have_is_a_problem() -> None:
    assert Reading(load_manifest(Path("/tmp/a\0b"), {})).only.code == "unreadable"


def test_an_empty_file_is_an_empty_manifest(load: Load) -> None:
    assert load("").manifest.models == {}


SYNTAX = [
    pytest.param("[models.m]\nsource = m.gguf\n", 2, 10, "text needs quotes", id="unquoted text"),
    pytest.param("slots 4", 1, 7, "= is missing", id="no equals sign"),
    pytest.param('a = "x', 1, 7, "not closed", id="open string"),
    pytest.param("a = 'x\n", 1, 7, "not closed", id="open literal string"),
    pytest.param("a = [1, 2", 1, 10, "", id="open list"),
    pytest.param("[models", 1, 8, "] of this header", id="open header"),
    pytest.param('a = "C:\\models"', 1, 10, "must be written", id="backslash"),
    pytest.param("a = 1 b = 2", 1, 7, "something left", id="two on a line"),
    pytest.param("a = 2020-02-31", 1, 5, "no date", id="bad date"),
    pytest.param("a = {b = 1,\nc = 2}", 1, 12, "", id="inline table over lines"),
    pytest.param("\x01 = 1", 1, 1, "", id="control character"),
    pytest.param("a = " + "9" * 5000, 1, 5, "too many digits", id="endless number"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), SYNTAX)
def test_a_syntax_error_has_a_place_and_a_sentence(text: str, line: int, column: int, words: str) -> None:
    problem = read(text).only
    assert (problem.code, problem.line, problem.column) == ("toml_syntax", line, column)
    assert words in problem.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = " + "[" * 100_000, id="lists"),
        pytest.param("a = " + "{a = " * 100_000, id="inline tables"),
        pytest.param(".".join("a" * 500_000) + " = 1", id="dotted key"),
        pytest.param("[" + ".".join("a" * 500_000) + "]", id="header"),
        pytest.param("x = { " + ".".join("a" * 500_000) + " = 1 }", id="dotted key in an inline table"),
    ],
)
def test_nesting_without_end_is_one_problem_at_once(text: str) -> None:
    problem = read(text).only
    assert (problem.code, problem.allowed) == ("too_deep", "at most 100 levels")


def test_many_dots_in_a_text_are_no_nesting() -> None:
    assert read(f'{MODEL}display_name = "{"a." * 200}"').errors == []


def test_names_declared_twice_are_all_reported_with_both_places_and_the_rest_is_checked() -> None:
    text = f"{MODEL}slots = 1\nslots = 2\n[models.n]\nsource = 'n'\n{MODEL}x = 1\n[server]\nlisten = 5\n"
    reading = read(text)
    assert [(p.code, p.path, p.line) for p in reading.errors] == [
        ("duplicate_name", "models.m.slots", 4),
        ("duplicate_name", "models.m", 7),
        ("wrong_type", "server.listen", 11),
    ]
    assert "stands first at /nowhere/serve.toml:1:9" in reading.errors[1].message


@pytest.mark.parametrize(
    "table", ["{ load = '1m', load = '2m' }", "{ load = '1m', load = '2m', stall = '1m' }"]
)
def test_a_key_twice_in_an_inline_table_is_one_problem(table: str) -> None:
    problem = read(f"{MODEL}timeout = {table}").only
    assert (problem.code, problem.path, problem.column) == ("duplicate_name", "models.m.timeout.load", 26)


def test_a_duplicate_and_a_syntax_error_are_both_reported() -> None:
    assert sorted(read("a = 1\na = 2\nb = \n").codes) == ["duplicate_name", "toml_syntax"]


def test_a_problem_names_the_file_as_it_was_given() -> None:
    loaded = check_text(Path("serve.toml"), "x = 1", {})
    assert loaded.problems[0].location == "serve.toml:1:1"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = 1\n" * 5000, id="keys"),
        pytest.param("[models.m]\nsource = 'x'\n" * 2000, id="tables"),
        pytest.param("[models.m]\na = 1\na = 2\n" * 1000, id="keys in tables"),
    ],
)
def test_thousands_of_duplicates_are_read_in_one_go(text: str) -> None:
    reading = read(text)
    assert "duplicate_name" in reading.codes
    assert reading.loaded.problems[-1].code == "more_problems"
