"""Which model files there are around a manifest, by name and size.

Those in the folders of its local sources, in `models` beside it, and those of hub sources that were fetched.
Blocks; called by model_files in its threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from os import fsencode
from pathlib import Path

from framework.models.folder import Found, FoundModel, find_models
from framework.models.hub.facts import ResolvedSource
from framework.models.regular_file import is_folder
from framework.values.manifest import Manifest
from framework.values.request import ModelSource

MODELS_FOLDER = "models"
ID_DIGITS = 16

FindLocal = Callable[[ModelSource], ResolvedSource | None]
"""The files of a source that are on this machine."""


@dataclass(frozen=True)
class Scan:
    """What was found at a moment, for one manifest."""

    at_s: float
    manifest_sha256: str
    folders: tuple[Path, ...]
    found: Found
    users: dict[Path, tuple[str, ...]]
    """Names of the models whose source is this file."""
    missing_folders: tuple[Path, ...] = ()
    """Those of `folders` that do not exist."""

    def with_id(self, file_id: str) -> FoundModel | None:
        """The model of this id."""
        return next((model for model in self.found.models if id_of(model) == file_id), None)

    def users_of(self, model: FoundModel) -> tuple[str, ...]:
        """The models of the manifest that any of these files is the source of."""
        return tuple(name for file in model.files for name in self.users.get(file.path, ()))


def id_of(model: FoundModel) -> str:
    """The id of a listed model: a digest of its path, so that an address holds no path."""
    return sha256(fsencode(model.path)).hexdigest()[:ID_DIGITS]


def scan_manifest(manifest: Manifest, find_local: FindLocal, at_s: float) -> Scan:
    """Look around a manifest. Folders come in the order of the file, `models` beside it first."""
    folders = {manifest.path.absolute().parent / MODELS_FOLDER: None}
    fetched: list[Path] = []
    users: dict[Path, tuple[str, ...]] = {}
    for request in manifest.models.values():
        if request.source.path is not None:
            files: tuple[Path, ...] = (request.source.path,)
            folders[request.source.path.parent] = None
        else:
            local = find_local(request.source)
            files = local.files if local is not None else ()
            fetched += files
        for path in files[:1]:
            users[path] = (*users.get(path, ()), request.id)
    found = find_models(folders, fetched)
    missing = tuple(folder for folder in folders if not is_folder(folder))
    return Scan(at_s, manifest.sha256, tuple(folders), found, users, missing)
