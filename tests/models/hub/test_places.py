"""Where the cache lies and what is in it (02 §7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.models.hub.places import (
    cache_dir,
    canonical_repo,
    file_below,
    gguf_files,
    is_safe_path,
    snapshot_of,
    snapshots,
)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HOME": "/h"}, "/h/.cache/huggingface/hub", id="default"),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub", id="XDG"),
        pytest.param({"HOME": "/h", "HF_HOME": "~/hf"}, "/h/hf/hub", id="HF_HOME"),
        pytest.param({"HF_HOME": "/hf", "HF_HUB_CACHE": "$HF_HOME/c"}, "/hf/c", id="HF_HUB_CACHE"),
        pytest.param({"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/hf"}, "/old", id="older name"),
        pytest.param({"HOME": "/h", "HF_HUB_CACHE": ""}, "/h/.cache/huggingface/hub", id="empty is unset"),
    ],
)
def test_the_cache_is_where_the_client_has_it(environ: dict[str, str], expected: str) -> None:
    assert cache_dir(environ) == Path(expected)


@pytest.mark.parametrize("path", ["m.gguf", "sub/dir/ok.gguf", "..gguf", "a..b/c.gguf"])
def test_names_that_stay_below(path: str) -> None:
    assert is_safe_path(path)


@pytest.mark.parametrize(
    "path",
    ["../../etc/cron.d/x.gguf", "/abs.gguf", "a\\..\\b.gguf", "a/./b", "a//b", "", "n\0", "l\nine", "C:x"],
)
def test_names_that_lead_out(path: str, tmp_path: Path) -> None:
    assert not is_safe_path(path)
    assert file_below(tmp_path, path) is None


def test_snapshots_are_visited_newest_first(tmp_path: Path) -> None:
    folder = tmp_path / "models--o--r" / "snapshots"
    for name, age in (("aaa", 30), ("bbb", 10), ("ccc", 20)):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (1_000_000 - age, 1_000_000 - age))
    assert [path.name for path in snapshots(tmp_path, "o/r")] == ["bbb", "ccc", "aaa"]


def test_a_repository_is_found_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "models--Org--Name" / "snapshots" / "x").mkdir(parents=True)
    assert canonical_repo(tmp_path, "org/name") == "Org/Name"
    assert len(snapshots(tmp_path, "org/name")) == 1


def test_a_repository_that_is_not_cached_keeps_its_spelling(tmp_path: Path) -> None:
    assert canonical_repo(tmp_path / "missing", "Org/name") == "Org/name"


def test_links_are_followed_and_broken_ones_are_not_listed(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    (snapshot / "Q4").mkdir(parents=True)
    (tmp_path / "blob").write_bytes(b"x")
    (snapshot / "Q4" / "m.GGUF").symlink_to(tmp_path / "blob")
    (snapshot / "gone.gguf").symlink_to(tmp_path / "nothing")
    (snapshot / "circle").symlink_to(snapshot)
    (snapshot / "README.md").write_text("")
    assert gguf_files(snapshot) == ["Q4/m.GGUF"]


def test_the_snapshot_of_a_file() -> None:
    path = Path("/c/models--o--r/snapshots/abc/Q4/m.gguf")
    assert snapshot_of(path) == Path("/c/models--o--r/snapshots/abc")
    assert snapshot_of(Path("/somewhere/m.gguf")) is None
