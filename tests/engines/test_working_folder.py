"""Folders that measuring processes stand in: gone at the end, and what killed managers left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.engines.working_folder import LEFT_BEHIND_S, PREFIX, remove_left_behind, working_folder

NOW_S = 1_000_000_000.0


def left(directory: Path, name: str, age_s: float) -> Path:
    """A folder with a file in it, as old as that."""
    folder = directory / name
    folder.mkdir()
    (folder / "core").write_text("x")
    os.utime(folder, (NOW_S - age_s, NOW_S - age_s))
    return folder


def test_a_folder_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with working_folder(tmp_path) as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        (Path(folder) / "core").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_the_next_one_removes_what_a_killed_manager_left(tmp_path: Path) -> None:
    left(tmp_path, PREFIX + "old", LEFT_BEHIND_S + 1)
    with working_folder(tmp_path) as folder:
        assert [path.name for path in tmp_path.iterdir()] == [Path(folder).name]


@pytest.mark.parametrize(
    ("name", "age_s"),
    [
        pytest.param(PREFIX + "new", LEFT_BEHIND_S - 1, id="in use, perhaps"),
        pytest.param("tmp-measure-x", LEFT_BEHIND_S * 9, id="of somebody else"),
    ],
)
def test_other_folders_stay(tmp_path: Path, name: str, age_s: float) -> None:
    folder = left(tmp_path, name, age_s)
    remove_left_behind(tmp_path, NOW_S)
    assert (folder / "core").exists()


def test_a_link_and_what_it_leads_to_stay(tmp_path: Path) -> None:
    target = left(tmp_path, "kept", LEFT_BEHIND_S * 9)
    (tmp_path / (PREFIX + "link")).symlink_to(target)
    remove_left_behind(tmp_path, NOW_S * 2)
    assert (target / "core").exists()
    assert (tmp_path / (PREFIX + "link")).is_symlink()


def test_a_directory_that_cannot_be_read_is_no_fault(tmp_path: Path) -> None:
    remove_left_behind(tmp_path / "missing", NOW_S)
