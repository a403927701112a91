"""An empty file in the place of a manifest unloads nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.manifest.load import Loaded, load_manifest
from framework.reconcile.accidents import without_accidents
from framework.values.manifest import Manifest

TEXT = '[models.a]\nsource = "./a.gguf"\n'


def load(folder: Path, text: str) -> Loaded:
    path = folder / "serve.toml"
    path.write_text(text)
    return load_manifest(path, {})


@pytest.fixture
def in_force(tmp_path: Path) -> Manifest:
    manifest = load(tmp_path, TEXT).manifest
    assert manifest is not None
    return manifest


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_text_is_refused_while_models_are_declared(
    tmp_path: Path, in_force: Manifest, text: str
) -> None:
    loaded = without_accidents(load(tmp_path, text), in_force)
    assert loaded.manifest is None
    assert [problem.code for problem in loaded.problems] == ["manifest_emptied"]
    assert "serve.toml:1:1" in loaded.problems[0].sentence


def test_whoever_means_it_says_so(tmp_path: Path, in_force: Manifest) -> None:
    loaded = without_accidents(load(tmp_path, "# nothing for tonight\n"), in_force)
    assert loaded.manifest is not None
    assert not loaded.manifest.models


def test_an_empty_text_is_fine_where_nothing_is_declared(tmp_path: Path, in_force: Manifest) -> None:
    assert without_accidents(load(tmp_path, ""), replace(in_force, models={})).manifest is not None
