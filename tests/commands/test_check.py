"""`paddock check`: every problem with its place, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.commands.check import excerpt, show
from framework.manifest.load import check_text
from tests.commands.conftest import Paddock
from tests.test_tls import pair

NO_FILES = [
    pytest.param(os.mkfifo, id="pipe"),
    pytest.param(lambda path: path.symlink_to("/dev/zero"), id="device"),
]
BROKEN = '[models.tiny]\nsource = "tiny.gguf"\nslotz = 4\ncontext = "many"\n'


def test_good_manifest_ends_with_0(paddock: Paddock, place: Path) -> None:
    ended = paddock("check")
    assert ended.code == 0
    assert ended.out == "serve.toml: ok, 1 model\n"


def test_broken_manifest_ends_with_2_and_shows_every_problem(paddock: Paddock, place: Path) -> None:
    (place / "serve.toml").write_text(BROKEN)
    ended = paddock("check")
    assert ended.code == 2
    assert "serve.toml:3:1: error: models.tiny.slotz is not a known key [unknown_key]\n" in ended.out
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
    assert "PADDOCK_LISTEN: error: server.listen" in ended.out


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


def test_missing_manifest_is_named_once_and_has_no_excerpt(paddock: Paddock, place: Path) -> None:
    lines = paddock("check", "--manifest", "gone.toml").out.splitlines()
    assert lines == [
        "gone.toml:1:1: error: the file does not exist [file_missing]",
        "    allowed: a manifest; name it with --manifest, or write one as docs/own-model.md shows",
        "",
        "gone.toml: 1 error, 0 warnings",
    ]


@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("included", [False, True], ids=["manifest", "included"])
def test_what_is_no_file_is_refused_without_reading_it(
    paddock: Paddock, place: Path, make: Callable[[Path], Any], included: bool
) -> None:
    (place / "serve.toml").write_text('include = ["other.toml"]')
    make(place / "other.toml")
    ended = paddock("check") if included else paddock("check", "--manifest", "other.toml")
    assert ended.code == 2
    assert "other.toml:1:1: error: the file is not a regular file [not_a_file]\n\n" in ended.out


def test_excerpt_is_of_what_was_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = check_text(place / "serve.toml", "x = 1", {})
    show(place / "serve.toml", loaded)
    assert "    1 | x = 1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(BROKEN.encode("utf-16"), "is UTF-16", id="utf-16"),
        pytest.param(BROKEN.encode("utf-16-be"), "is UTF-16", id="utf-16-without-mark"),
        pytest.param(BROKEN.replace("\n", "\r").encode(), "line ends LF or CRLF", id="line-ends-of-old"),
    ],
)
def test_foreign_text_formats_are_named(paddock: Paddock, place: Path, content: bytes, said: str) -> None:
    (place / "serve.toml").write_bytes(content)
    ended = paddock("check")
    assert ended.code == 2
    assert said in ended.out
    assert "serve.toml: 1 error, 0 warnings" in ended.out


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


@pytest.mark.parametrize(("key", "code"), [("two", 2), ("one", 0)], ids=["mismatch", "fine"])
def test_check_looks_at_the_pair_before_anything_starts(
    paddock: Paddock, place: Path, key: str, code: int
) -> None:
    tls = pair(place, key=key)
    (place / "serve.toml").write_text(
        f'[server]\ntls = {{ certificate = "file:{tls.certificate}", key = "file:{tls.key}" }}\n'
    )
    ended = paddock("check")
    assert ended.code == code
    assert ("does not belong to" in ended.out) == (code == 2)
