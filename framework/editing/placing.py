"""Which file and which table of a manifest an edit of a model goes to, and its text with the edit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli

from framework.editing.documents import ManifestFile
from framework.manifest.edit import Change, EditImpossible, edited
from framework.values.manifest_edit import FieldEdit, Owner, Way

SECTIONS: Mapping[Owner, str] = {"model": "models", "policy": "speculation"}


@dataclass(frozen=True)
class EditedFile:
    """A file with an edit in it, not written anywhere."""

    file: ManifestFile
    text: str
    changes: tuple[Change, ...]


def with_way(files: Sequence[ManifestFile], model: str, way: Way) -> EditedFile:
    """The file that holds the table, with the way applied. Raises EditImpossible."""
    owners = {edit.owner for edit in way.edits}
    if len(owners) != 1:
        raise EditImpossible("Edits of several tables cannot be made in one step; change them by hand.")
    owner = owners.pop()
    data = [_data(file) for file in files]
    name = model if owner == "model" else _policy_of(data, model)
    found = zip(files, data, strict=True)
    file = next((file for file, held in found if name in _tables(held, SECTIONS[owner])), None)
    if name is None or file is None:
        raise EditImpossible(
            f"There is no table [{SECTIONS[owner]}.NAME] that this could be written into; change it by hand."
        )
    changes = tuple(_change(SECTIONS[owner], name, edit) for edit in way.edits)
    return EditedFile(file, edited(file.text, changes), changes)


def with_changes(file: ManifestFile, changes: Sequence[Change]) -> EditedFile:
    """A file with values set by their whole paths. Raises EditImpossible."""
    return EditedFile(file, edited(file.text, changes), tuple(changes))


def _change(section: str, name: str, edit: FieldEdit) -> Change:
    return Change((section, name, *edit.path), edit.value)


def _policy_of(data: Sequence[Mapping[str, Any]], model: str) -> str | None:
    """The policy that a model names, itself or by the defaults."""
    owns = (_tables(held, "models").get(model) for held in data)
    inherited = (held.get("defaults") for held in data)
    for table in (*owns, *inherited):
        if isinstance(table, Mapping) and isinstance(name := table.get("speculation"), str):
            return name
    return None


def _tables(held: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    found = held.get(section)
    return found if isinstance(found, Mapping) else {}


def _data(file: ManifestFile) -> Mapping[str, Any]:
    try:
        return tomli.loads(file.text)
    except (ValueError, RecursionError):
        return {}
