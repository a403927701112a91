"""What is wrong with a `[speculation.NAME]` table as a whole: its mode, and keys that this mode does not use.

Called by `load.py` once the tables are read.
"""

from __future__ import annotations

from framework.manifest.findings import Findings, shown
from framework.manifest.schema_engines import SpeculationTable
from framework.manifest.spec_modes import (
    ACCEPTED,
    CANONICAL,
    MODES_WITH_DRAFTER,
    canonical_mode,
    is_known_mode,
)
from framework.manifest.suggest import nearest
from framework.manifest.tables import Entry, Tables


def check_policies(tables: Tables, findings: Findings) -> None:
    """Note modes that nobody knows, and drafters and depths that a mode has no use for."""
    for entry in tables.speculation.values():
        if "mode" in entry.bad_keys:
            continue
        _note_unknown_mode(entry, findings)
        _note_unused_drafter(entry, findings)
        _note_unused_depth(entry, findings)


def _note_unknown_mode(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """A misspelt mode runs as `auto`, visibly (05 §2.4)."""
    mode = entry.table.mode
    if is_known_mode(mode):
        return
    place = entry.place.child("mode")
    near = nearest(str(mode), CANONICAL)
    findings.add(
        "unknown_spec_mode",
        place,
        f"{place.name}: {shown(mode)} is no known mode, auto is used",
        found=shown(mode),
        allowed=", ".join(ACCEPTED),
        suggestion=f'"{near}"' if near else "",
        severity="warning",
    )


def _note_unused_drafter(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """A drafter that would never be loaded is a mistake in one of the two lines (05 §2.5)."""
    mode = canonical_mode(entry.table.mode)
    if entry.table.draft is None or mode in MODES_WITH_DRAFTER:
        return
    place = entry.place.child("draft").key
    message = f"{place.name}: mode {mode} drafts without a model; remove draft, or choose another mode"
    findings.add("draft_unused", place, message, found=mode, allowed=", ".join(MODES_WITH_DRAFTER))


def _note_unused_depth(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """Engines once had one option for both lengths, so some write the one and mean the other."""
    mode, depth = canonical_mode(entry.table.mode), entry.table.depth
    if not isinstance(depth, int) or mode in MODES_WITH_DRAFTER:
        return
    place = entry.place.child("depth").key
    longest = "; ngram.max is the length of its drafts" if mode == "ngram" else ""
    findings.add(
        "depth_unused",
        place,
        f"{place.name} has no effect with mode {mode}{longest}",
        found=str(depth),
        suggestion=f"ngram.max = {depth}" if mode == "ngram" else "",
        severity="warning",
    )
