"""A complete model in the cache, of whatever revision, without asking anybody (02 §7.3-7.9, §10.2).

The newest snapshot that has all of it wins; what is cached stays what is served, even when the repository has
newer files. A file that is cut off is passed over, so that it is fetched again. Called by hub.sources.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from framework.models.gguf_tensors import read_tensors
from framework.models.hub.choice import choose
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.pins import is_exact, read_pin
from framework.models.hub.places import file_below, gguf_files, snapshots
from framework.values.reason import Refused
from framework.values.request import ModelSource


def find_cached(cache: Path, source: ModelSource) -> ResolvedSource | None:
    """The cached files of a source. Blocking.

    What the words of a source do not decide by themselves (02 §4.4) is only found when it was decided before.
    """
    if source.repo is None:
        return None
    pinned = source.file or read_pin(cache, source)
    if pinned is None and not source.variant:
        return None
    wanted = replace(source, file=pinned)
    for snapshot in snapshots(cache, source.repo):
        found = _in_snapshot(snapshot, wanted)
        if found is not None and (pinned or is_exact(source.variant, found.label)):
            return replace(found, source=source)
    return None


def is_whole(path: Path) -> bool:
    """Whether a file holds all that its header promises. Other faults are the planner's to tell."""
    return read_tensors(path).status not in ("truncated", "unreadable")


def _in_snapshot(snapshot: Path, source: ModelSource) -> ResolvedSource | None:
    """A set must lie in one snapshot: the engine finds shards beside the first one."""
    try:
        chosen = choose(gguf_files(snapshot), source)
    except Refused:
        return None
    paths = [path for name in chosen.paths if (path := file_below(snapshot, name)) is not None]
    if len(paths) != len(chosen.paths) or not all(is_whole(path) for path in paths):
        return None
    return ResolvedSource(source, paths[0], tuple(paths), chosen.label, snapshot.name, notes=chosen.notes)
