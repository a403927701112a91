"""Which files of a listing, or of a snapshot, a source asks for (02 §4). Pure.

Called by hub.download for live listings and by hub.cached for snapshots.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from framework.models.file_names import label
from framework.models.hub import refusals
from framework.models.variants import (
    VariantFiles,
    choose_variant,
    file_sets,
    missing_shards,
    model_files,
)
from framework.values.request import ModelSource

NEAR = 3
MOST_COMPARED = 1000


def choose(paths: Sequence[str], source: ModelSource) -> VariantFiles:
    """The files. Raises Refused: `variant_unclear`, `incomplete_set` or `model_missing`."""
    repo = source.repo or ""
    if not source.file:
        return choose_variant(paths, source.variant, repo=repo)
    if source.file not in paths:
        models = model_files(paths)
        # Comparing takes a while for each name.
        near = difflib.get_close_matches(source.file, models[:MOST_COMPARED], NEAR, cutoff=0.0)
        raise refusals.no_such_file(repo, source.file, near)
    # Any shard names its whole set.
    files = next(files for files in file_sets(paths) if source.file in files)
    if missing_shards(files):
        return choose_variant(files, repo=repo)
    return VariantFiles(files[0], files[1:], label(files[0]))
