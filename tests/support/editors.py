"""The real editor of a manifest, for systems that are made of values otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from framework.editing.editor import Editor
from framework.editing.history import History
from framework.manifest.load import ManifestReader
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import EventLog
from framework.values.instance import ModelView


def make_editor(
    current: CurrentManifest, views: Callable[[], Iterable[ModelView]], events: EventLog
) -> Editor:
    """Edits the files of the manifest in force; what it replaces is kept beside them."""
    path = current.manifest.path
    return Editor(ManifestReader(path, {}, {}), current, views, History(path.parent), events)
