"""What a listing of a repository decided and is not asked about again.

First, which file a source turned out to mean, where its words alone do not say it.

`hf:o/r`, or a variant that is only part of a name, is decided by the listing of a repository. The decision is
kept beside the repository's files in the cache, and goes when they go: a later listing, or a cache that holds
some other variant, must not switch a model silently. Written by hub.download, read by hub.cached.
Second, that there is no projector, or no drafter, for a model. Kept by hub.companion. It holds until somebody
knows better, but after a day, or when a person asks for it, the repository is asked again.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from framework.models.file_names import label
from framework.models.hub.places import is_safe_path, repo_dirs, repo_folder, snapshot_of
from framework.values.request import ModelSource

log = logging.getLogger(__name__)

FOLDER = ".paddock"
LONGEST_NAME = 1024
NO = "no-"
# What is missing is sometimes published later. Starts happen all day, and most repositories never get one.
FRESH_S = 24 * 3600.0
# For a note that is not to be relied on: the beginning of time.
STALE_AT = (0, 0)


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
    """Keep that the repository offers no such companion for the commit of a model now."""
    place = _place_of_none(main, companion)
    if place is None:
        return
    try:
        place.parent.mkdir(exist_ok=True)
        place.touch()
    except OSError as error:
        log.debug("%s: %s", place, error)


def forget_none(main: Path, companion: str) -> None:
    """Its repository has one by now."""
    place = _place_of_none(main, companion)
    if place is None:
        return
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        log.debug("%s: %s", place, error)


def is_known_to_lack(main: Path, companion: str) -> bool:
    """Whether that was found for the commit that a model in the cache is of, however long ago."""
    return _noted_at(main, companion) is not None


def lacked_lately(main: Path, companion: str) -> bool:
    """Whether that was found so lately that nobody needs to ask again."""
    noted_at = _noted_at(main, companion)
    # One from the future was written by a clock that nobody can judge.
    return noted_at is not None and 0 <= datetime.now(UTC).timestamp() - noted_at < FRESH_S


def ask_again(main: Path) -> None:
    """Let the next fetch of a model ask for everything that its repository was found to lack."""
    snapshot = snapshot_of(main)
    if snapshot is None:
        return
    for place in snapshot.parents[1].glob(f"{FOLDER}/{NO}*-{glob.escape(snapshot.name)}"):
        try:
            os.utime(place, STALE_AT)
        except OSError as error:
            log.debug("%s: %s", place, error)


def _noted_at(main: Path, companion: str) -> float | None:
    place = _place_of_none(main, companion)
    try:
        return None if place is None else place.stat().st_mtime
    except OSError:
        return None


def _place_of_none(main: Path, companion: str) -> Path | None:
    snapshot = snapshot_of(main)
    return None if snapshot is None else snapshot.parents[1] / FOLDER / f"{NO}{companion}-{snapshot.name}"


def _place(folder: Path, variant: str | None) -> Path:
    key = (variant or "").strip().lower()
    return folder / FOLDER / hashlib.sha256(key.encode()).hexdigest()
