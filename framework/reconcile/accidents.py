"""Texts that nobody means: a file without a line, as a full disk or an editor in trouble leaves it. Pure.

Called by reconcile.apply for every text. Whoever wants no model deletes their tables, and leaves anything.
"""

from __future__ import annotations

from dataclasses import replace

from framework.manifest.load import Loaded
from framework.values.manifest import Manifest
from framework.values.problem import Problem


def without_accidents(loaded: Loaded, in_force: Manifest) -> Loaded:
    """What was loaded, refused where the whole manifest is empty while models are declared."""
    is_empty = bool(loaded.sources) and not any(text.strip() for text in loaded.sources.values())
    if loaded.manifest is None or not is_empty or not in_force.models:
        return loaded
    found = Problem(
        "manifest_emptied",
        in_force.path.name,
        1,
        1,
        "",
        "the file is empty, which would unload every model: it is taken for an accident; to unload them all"
        " delete their tables and leave a line, be it a comment",
    )
    return replace(loaded, manifest=None, problems=(found,))
