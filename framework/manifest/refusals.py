"""Notes what the manifest spells and this version does not carry out.

Called by `load.py` once the tables are read; the list itself is `unavailable.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from framework.manifest.findings import Findings, Place, shown
from framework.manifest.tables import Entry
from framework.manifest.unavailable import refusal


def note_refusals(entries: Iterable[Entry[Any]], findings: Findings) -> None:
    """Note every key and value of these tables that is not available yet."""
    for entry in entries:
        kind = "models" if entry.kind == "defaults" else entry.kind
        for key, value in entry.raw.items():
            _note(kind, key, value, entry, findings)


def _note(kind: str, key: str, value: object, entry: Entry[Any], findings: Findings) -> None:
    sentence = refusal(kind, key, value)
    if sentence is not None and key not in entry.bad_keys:
        place: Place = entry.place.child(key).key
        findings.add("not_available_yet", place, f"{place.name}: {sentence}", found=shown(value))
