"""Files of a manifest as texts, and texts of forms as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.editing.documents import ManifestFile, files_of, written_as
from framework.manifest.load import ManifestReader

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("typed", "before", "written"),
    [
        pytest.param("a\r\nb\r\n", b"x\ny\n", b"a\nb\n", id="a-form-into-a-file-of-unix"),
        pytest.param("a\r\nb\r\n", b"x\r\ny\r\n", b"a\r\nb\r\n", id="a-file-of-windows-stays-one"),
        pytest.param("a\nb\n", b"x\r\ny\r\n", b"a\r\nb\r\n", id="a-script-into-a-file-of-windows"),
        pytest.param("a\n", MARK + b"x\n", MARK + b"a\n", id="the-mark-stays"),
        pytest.param("a\rb", b"", b"a\nb", id="old-line-ends"),
        pytest.param("", b"x\n", b"", id="nothing"),
    ],
)
def test_a_text_is_written_as_the_file_was(typed: str, before: bytes, written: bytes) -> None:
    assert written_as(typed, before) == written


def test_a_file_is_shown_without_what_a_form_cannot_hold() -> None:
    assert ManifestFile("a", Path("/a"), MARK + b"x\r\ny\r\n").text == "x\ny\n"


def test_the_files_of_a_manifest_come_with_their_names_and_not_with_templates(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    (tmp_path / "d" / "a.toml").write_text('[models.a]\nsource = "a.gguf"\ntemplate = "file:chat.jinja"\n')
    main = tmp_path / "serve.toml"
    main.write_text('include = ["d/*.toml"]\n')
    files = files_of(ManifestReader(main, {}, {})())
    assert [(file.name, file.path) for file in files] == [
        (str(main), main),
        (str(tmp_path / "d" / "a.toml"), tmp_path / "d" / "a.toml"),
    ]


def test_a_file_that_is_no_manifest_can_still_be_edited(tmp_path: Path) -> None:
    main = tmp_path / "serve.toml"
    main.write_text("no toml")
    assert [file.text for file in files_of(ManifestReader(main, {}, {})())] == ["no toml"]
