"""`paddock check`: every problem with its place, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.commands.check import excerpt
from tests.commands.conftest import Paddock

BROKEN = '[models.tiny]\nsource = "tiny.gguf"\nslotz = 4\ncontext = "many"\n'


def test_good_manifest_ends_with_0(paddock: Paddock, place: Path) -> None:
    ended = paddock("check")
    assert ended.code == 0
    assert ended.out == "serve.toml: ok, 1 model\n"


def test_broken_manifest_ends_with_2_and_shows_every_problem(paddock: Paddock, place: Path) -> None:
    (place / "serve.toml").write_text(BROKEN)
    ended = paddock("check")
    assert ended.code == 2
    assert "serve.toml:3:1: error: models.tiny.slotz" in ended.out
    assert "did you mean: slots" in ended.out
    assert "serve.toml:4:11: error: models.tiny.context" in ended.out
    assert ended.out.endswith("serve.toml: 2 errors, 0 warnings\n")


def test_problem_is_shown_in_its_line(paddock: Paddock, place: Path) -> None:
    (place / "serve.toml").write_text(BROKEN)
    lines = paddock("check").out.splitlines()
    at = lines.index('    4 | context = "many"')
    assert lines[at + 1].index("^") == lines[at].index('"many"')


def test_json_is_the_shape_of_the_specification_and_nothing_else(paddock: Paddock, place: Path) -> None:
    (place / "serve.toml").write_text(BROKEN)
    ended = paddock("check", "--json")
    assert ended.code == 2
    assert ended.err == ""
    assert ended.json.keys() == {"ok", "manifest", "problems"}
    assert ended.json["problems"][0].keys() == {
        "code", "severity", "file", "line", "column", "path", "message", "found", "allowed", "suggestion",
    }  # fmt: skip


def test_json_of_a_good_manifest_is_ok(paddock: Paddock, place: Path) -> None:
    assert paddock("check", "--json").json["ok"] is True


def test_missing_manifest_is_a_problem(paddock: Paddock, tmp_path: Path) -> None:
    ended = paddock("check", "--manifest", str(tmp_path / "gone.toml"))
    assert ended.code == 2
    assert "does not exist" in ended.out


def test_manifest_that_is_no_toml_is_a_problem(paddock: Paddock, place: Path) -> None:
    (place / "serve.toml").write_bytes(b"[models\x1b]52;c;\xff")
    ended = paddock("check")
    assert ended.code == 2
    assert "serve.toml:1:" in ended.out
    assert "\x1b" not in ended.out


def test_variable_that_overrides_the_listener_is_checked(
    paddock: Paddock, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDOCK_LISTEN", "0.0.0.0:8080")
    ended = paddock("check")
    assert ended.code == 2
    assert "environment" in ended.out


def test_manifest_may_be_named_by_the_environment(
    paddock: Paddock, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "serve.toml").rename(place / "other.toml")
    monkeypatch.setenv("PADDOCK_MANIFEST", "other.toml")
    assert paddock("check").out == "other.toml: ok, 1 model\n"


def test_schema_is_printed_without_a_manifest(paddock: Paddock, tmp_path: Path) -> None:
    ended = paddock("check", "--schema", "--manifest", str(tmp_path / "gone.toml"))
    assert ended.code == 0
    assert "models" in ended.json["properties"]


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        pytest.param("a = 1", 5, ["    7 | a = 1", "      |     ^"], id="plain"),
        pytest.param("\ta = 1", 2, ["    7 |     a = 1", "      |     ^"], id="after-a-tab"),
        pytest.param("a = 1  ", 7, ["    7 | a = 1  ", "      |       ^"], id="in-blanks-at-the-end"),
        pytest.param(
            "a\x07b = 1", 3, ["    7 | a\\x07b = 1", "      |      ^"], id="after-a-control-character"
        ),
        pytest.param("", 1, ["    7 | ", "      | ^"], id="empty-line"),
    ],
)
def test_caret_stands_below_the_column(text: str, column: int, expected: list[str]) -> None:
    assert list(excerpt(text, 7, column)) == expected


def test_long_line_is_cut_around_the_problem() -> None:
    line, caret = excerpt("x" * 500 + "!" + "y" * 500, 1, 501)
    assert len(line) < 120
    assert line[caret.index("^")] == "!"


def test_unknown_line_has_no_excerpt() -> None:
    assert list(excerpt(None, 1, 1)) == []
