"""Which model files are found in folders, and what keeps a search short."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.models import folder as module
from framework.models.folder import find_models


def put(folder: Path, *names: str, size: int = 1) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))


def names(*folders: Path, files: tuple[Path, ...] = ()) -> list[str]:
    return [model.path.name for model in find_models(folders, files).models]


def test_model_files_are_found_two_levels_down_and_no_deeper(tmp_path: Path) -> None:
    put(tmp_path, "a.gguf", "owner/b.gguf", "owner/repo/c.GGUF", "owner/repo/deep/d.gguf")
    assert names(tmp_path) == ["a.gguf", "b.gguf", "c.GGUF"]


@pytest.mark.parametrize(
    "name", ["notes.txt", "m.gguf.part", "imatrix.gguf", ".hidden.gguf", ".cache/m.gguf"]
)
def test_what_is_no_model_is_left_out(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    assert names(tmp_path) == []


def test_shards_of_one_set_are_one_model(tmp_path: Path) -> None:
    put(tmp_path, "m-00002-of-00002.gguf", "m-00001-of-00002.gguf", "m-00001-of-00003.gguf", size=10)
    two, three = find_models([tmp_path]).models
    assert [file.path.name for file in two.files] == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert (two.size_bytes, len(three.files)) == (20, 1)


def test_shards_of_two_folders_stay_apart(tmp_path: Path) -> None:
    put(tmp_path, "a/m-00001-of-00002.gguf", "b/m-00002-of-00002.gguf")
    assert len(find_models([tmp_path]).models) == 2


def test_a_folder_that_is_named_twice_is_looked_at_once(tmp_path: Path) -> None:
    put(tmp_path, "in/a.gguf")
    assert names(tmp_path, tmp_path / "in", tmp_path) == ["a.gguf"]


def test_links_in_circles_end(tmp_path: Path) -> None:
    put(tmp_path, "in/a.gguf")
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    (tmp_path / "in" / "self").symlink_to("self")
    assert names(tmp_path) == ["a.gguf"]


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/a.gguf")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "big").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "models") == ["a.gguf"]


def test_a_link_that_leads_nowhere_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").symlink_to(tmp_path / "gone")
    (model,) = find_models([tmp_path]).models
    assert model.size_bytes == 0


def test_a_file_that_is_named_is_listed_wherever_it_lies(tmp_path: Path) -> None:
    put(tmp_path, "blobs/a.gguf")
    path = tmp_path / "blobs" / "a.gguf"
    assert names(tmp_path / "empty", files=(path, path)) == ["a.gguf"]


@pytest.mark.parametrize("missing", ["nothing", "a.gguf"])
def test_a_folder_that_cannot_be_looked_at_is_empty(tmp_path: Path, missing: str) -> None:
    put(tmp_path, "a.gguf")
    assert names(tmp_path / missing) == []


def test_a_search_ends_at_its_limit_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    put(tmp_path, *(f"{number}.gguf" for number in range(5)))
    found = find_models([tmp_path])
    assert (len(found.models), found.complete) == (3, False)


def test_a_search_ends_at_its_limit_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    put(tmp_path, *(f"{number}.txt" for number in range(20)))
    assert find_models([tmp_path]).complete is False


def test_names_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.gguf"))).write_bytes(b"x")
    assert len(find_models([tmp_path]).models) == 1
