"""Texts of before: private, bounded, and nobody else's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from framework.editing.documents import ManifestFile
from framework.editing.history import FOLDER, MOST_VERSIONS, History, Version
from framework.editing.refusal import EditRefused
from tests.editing.test_disk import files_of_at_most

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def kept(history: History, raw: bytes, by: str = "laptop") -> Version:
    file = ManifestFile("serve.toml", Path("/etc/serve.toml"), raw)
    return history.keep(file, "f" * 64, at=NOON, by=by, summary="replaces a")


def test_a_version_comes_back_byte_for_byte(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = kept(history, b"\xef\xbb\xbf a\r\n\xff")
    assert History(tmp_path).versions() == (version,)
    assert history.text_of(version) == b"\xef\xbb\xbf a\r\n\xff"
    assert (version.by, version.at, version.size_bytes) == ("laptop", NOON, 8)


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    kept(History(tmp_path), b"a")
    folder = tmp_path / FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_only_so_many_are_kept_and_numbers_go_on(tmp_path: Path) -> None:
    history = History(tmp_path)
    for number in range(MOST_VERSIONS + 3):
        kept(history, str(number).encode())
    found = history.versions()
    assert [version.id for version in found] == list(range(MOST_VERSIONS + 3, 3, -1))
    assert len(list((tmp_path / FOLDER).iterdir())) == 2 * MOST_VERSIONS


def test_what_is_not_ours_is_no_version(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = kept(history, b"a")
    folder = tmp_path / FOLDER
    (folder / "2.json").write_text("{}")
    (folder / "3.json").write_text("no json")
    (folder / "4.json").symlink_to("/etc/passwd")
    (folder / "x.json").write_text("{}")
    (folder / "5.json").mkdir()
    assert history.versions() == (version,)
    assert kept(history, b"b").id == 6


def test_a_version_without_its_text_is_not_there(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = kept(history, b"a")
    (tmp_path / FOLDER / "1.toml").unlink()
    with pytest.raises(KeyError):
        history.text_of(version)


def test_without_room_nothing_half_is_left(tmp_path: Path) -> None:
    history = History(tmp_path)
    with files_of_at_most(1000), pytest.raises(EditRefused) as caught:
        kept(history, b"x" * 5000)
    assert caught.value.reason.code == "manifest_disk_full"
    assert list((tmp_path / FOLDER).iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [{"size_bytes": "9"}, {"size_bytes": None}, {"by": 5}, {"file": None}, {"at": "2026-05-04T12:00:00"}],
    ids=["size-text", "size-none", "by", "file", "no-zone"],
)
def test_a_note_of_wrong_values_is_no_version_and_no_apply_fails_of_it(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    history = History(tmp_path)
    kept(history, b"a")
    note = tmp_path / FOLDER / "1.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | wrong))
    assert history.versions() == ()
    assert kept(history, b"b").id == 2


def test_a_text_that_a_kill_left_without_its_note_is_in_nobodys_way(tmp_path: Path) -> None:
    history = History(tmp_path)
    kept(history, b"a")
    (tmp_path / FOLDER / "2.toml").write_text("half")
    assert kept(history, b"b").id == 3
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        *("1.json", "1.toml", "3.json", "3.toml")
    ]
