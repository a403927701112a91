"""The edits of the storms: each way ends with the text in the file, and no mistake is a manifest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from framework.manifest.load import load_manifest
from tests.support.chaos.editors import WAYS, broken
from tests.support.chaos.models import Manifest, write_templates

SEEDS = range(60)


@pytest.fixture
def manifest(tmp_path: Path, tiny_gguf: Path) -> Manifest:
    write_templates(tmp_path)
    return Manifest(8080, tiny_gguf, "stop")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_ends_with_the_text(way: str, tmp_path: Path, manifest: Manifest) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(manifest.text)
    for seed in range(2):
        text = manifest.text.replace("context = 1024", f"context = {2048 + seed}")
        WAYS[way](path, text, random.Random(seed))
        assert path.read_text() == text


def test_a_broken_text_is_never_valid(tmp_path: Path, manifest: Manifest) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(manifest.text)
    assert load_manifest(path, {}).manifest is not None
    for seed in SEEDS:
        path.write_text(broken(manifest.text, random.Random(seed)))
        assert load_manifest(path, {}).manifest is None, path.read_text()


def test_no_piece_of_a_slow_writer_is_valid(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(manifest.text)
    seen = []
    monkeypatch.setattr(
        "tests.support.chaos.editors.time.sleep", lambda _: seen.append(load_manifest(path, {}).manifest)
    )
    for seed in SEEDS:
        WAYS["in pieces"](path, manifest.text, random.Random(seed))
        assert seen.pop() is not None
        assert seen == [None] * 3
        seen.clear()
