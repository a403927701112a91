"""What a listing of a repository decided and is not asked about again.

First, which file a source turned out to mean, where its words alone do not say it.

`hf:o/r`, or a variant that is only part of a name, is decided by the listing of a repository. The decision is
kept beside the repository's files in the cache, and goes when they go: a later listing, or a cache that holds
some other variant, must not switch a model silently. Written by hub.download, read by hub.cached.
Second, that there is no projector, or no drafter, for a model. Kept by hub.companion.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

from framework.models.file_names import label
from framework.models.hub.places import is_safe_path, repo_dirs, repo_folder, snapshot_of
from framework.values.request import ModelSource

log = logging.getLogger(__name__)

FOLDER = ".paddock"
LONGEST_NAME = 1024


def is_exact(variant: str | None, found: str | None) -> bool:
    """Whether the label of what was found is the variant that was asked for, in full."""
    return bool(variant) and (found or "").lower() == (variant or "").strip().lower()


def read_pin(cache: Path, source: ModelSource) -> str | None:
    """The file that was chosen for a source; None when nothing was kept."""
    for folder in repo_dirs(cache, source.repo or ""):
        try:
            with _place(folder, source.variant).open("rb") as file:
                name = file.read(LONGEST_NAME).decode()
        except (OSError, UnicodeDecodeError):
            continue
        if is_safe_path(name):
            return name
    return None


def write_pin(cache: Path, repo: str, variant: str | None, file: str) -> None:
    """Keep a choice, if the words of the source need it. Faults only cost a question to the hub."""
    if is_exact(variant, label(file)):
        return
    place = _place(cache / repo_folder(repo), variant)
    temporary = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(exist_ok=True)
        temporary.write_text(file, encoding="utf-8")
        temporary.replace(place)
    except OSError as error:
        log.debug("%s: %s", place, error)


def note_none(main: Path, companion: str) -> None:
    """Keep that the repository offered no such companion for the commit of a model: nobody asks again."""
    place = _place_of_none(main, companion)
    if place is None:
        return
    try:
        place.parent.mkdir(exist_ok=True)
        place.touch()
    except OSError as error:
        log.debug("%s: %s", place, error)


def is_known_to_lack(main: Path, companion: str) -> bool:
    """Whether that was found for the commit that a model in the cache is of."""
    place = _place_of_none(main, companion)
    return place is not None and place.exists()


def _place_of_none(main: Path, companion: str) -> Path | None:
    snapshot = snapshot_of(main)
    return None if snapshot is None else snapshot.parents[1] / FOLDER / f"no-{companion}-{snapshot.name}"


def _place(folder: Path, variant: str | None) -> Path:
    key = (variant or "").strip().lower()
    return folder / FOLDER / hashlib.sha256(key.encode()).hexdigest()
