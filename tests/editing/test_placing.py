"""Which file and table an edit of a model goes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.editing.documents import ManifestFile
from framework.editing.placing import with_way
from framework.manifest.edit import EditImpossible
from framework.values.manifest_edit import FieldEdit, Owner, Way

MAIN = """[defaults]
speculation = "fast"
slots = 2  # for all

[speculation.fast]
mode = "mtp"

[models.a]
source = "a.gguf"  # mine
"""
MORE = '[models."org/b:Q4"]\nsource = "b.gguf"\nspeculation = "slow"\n\n[speculation.slow]\nmode = "auto"\n'


def file(name: str, text: str) -> ManifestFile:
    return ManifestFile(name, Path("/etc") / name, text.encode())


FILES = (file("serve.toml", MAIN), file("more.toml", MORE))


def way(path: str, value: object, owner: Owner = "model") -> Way:
    return Way("", (FieldEdit(tuple(path.split(".")), value, owner),))


def test_a_field_goes_to_the_table_of_the_model_and_not_to_the_defaults() -> None:
    edited = with_way(FILES, "a", way("slots", 1))
    assert edited.file.name == "serve.toml"
    assert edited.text == MAIN + "slots = 1\n"


def test_a_model_of_an_included_file_is_edited_there() -> None:
    edited = with_way(FILES, "org/b:Q4", way("placement.split", "layer"))
    assert edited.file.name == "more.toml"
    assert 'speculation = "slow"\nplacement = {split = "layer"}\n' in edited.text
    assert edited.changes[0].path == ("models", "org/b:Q4", "placement", "split")


@pytest.mark.parametrize(("model", "policy"), [("a", "fast"), ("org/b:Q4", "slow")], ids=["inherited", "own"])
def test_a_policy_is_the_one_that_the_model_uses(model: str, policy: str) -> None:
    edited = with_way(FILES, model, way("mode", "off", "policy"))
    assert edited.changes[0].path == ("speculation", policy, "mode")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param((file("serve.toml", "[models.b]\n"),), id="no-such-model"),
        pytest.param((file("serve.toml", "no toml"),), id="no-toml"),
        pytest.param((file("serve.toml", "models = 5\n"),), id="no-table"),
    ],
)
def test_where_there_is_no_table_nothing_is_edited(files: tuple[ManifestFile, ...]) -> None:
    with pytest.raises(EditImpossible):
        with_way(files, "a", way("slots", 1))


def test_a_model_without_a_policy_has_none_to_edit() -> None:
    with pytest.raises(EditImpossible, match="speculation"):
        with_way((file("serve.toml", "[models.a]\n"),), "a", way("mode", "off", "policy"))
