"""What is wrong with a `[speculation.NAME]` table as a whole: its mode, and keys that this mode does not use.

Called by `load.py` once the tables are read.
"""

from __future__ import annotations

from collections.abc import Iterable

from framework.manifest.findings import FEW, Findings, shown
from framework.manifest.schema_engines import SpeculationTable
from framework.manifest.spec_modes import (
    ACCEPTED,
    CANONICAL,
    MODES_OF_DRAFTER,
    MODES_WITH_DRAFTER,
    MTP_WORDS,
    NGRAM_WORDS,
    TYPES_WITHOUT_MODE,
    canonical_mode,
    is_known_mode,
    unused_parts,
)
from framework.manifest.suggest import nearest
from framework.manifest.tables import Entry, Tables


def check_policies(tables: Tables, findings: Findings) -> None:
    """Note modes that nobody knows, drafters that are missing, and what a mode has no use for."""
    for entry in tables.speculation.values():
        if "mode" in entry.bad_keys:
            continue
        _note_unknown_mode(entry, findings)
        _note_unused_parts(entry, findings)
        _note_missing_drafter(entry, findings)
        _note_unused_drafter(entry, findings)
        _note_unused_depth(entry, findings)


def _note_unknown_mode(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """A misspelt mode runs as `auto`, visibly (05 §2.4)."""
    mode = entry.table.mode
    if is_known_mode(mode):
        return
    place = entry.place.child("mode")
    by_flag = _by_flag(str(mode).split(","))
    near = "" if by_flag else nearest(str(mode), CANONICAL)
    findings.add(
        "unknown_spec_mode",
        place,
        f"{place.name}: {shown(mode)} is no known mode, auto is used{by_flag}",
        found=shown(mode),
        allowed=", ".join(ACCEPTED),
        suggestion=f'"{near}"' if near else "",
        severity="warning",
    )


def _note_unused_parts(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """Only words for heads and for n-grams make a list; the others in it do nothing."""
    mode = entry.table.mode
    unused = unused_parts(mode)
    if not unused:
        return
    place = entry.place.child("mode")
    words = ", ".join(shown(word) for word in unused[:FEW]) + (", …" if len(unused) > FEW else "")
    count = "counts" if len(unused) == 1 else "count"
    message = f"{place.name}: {shown(mode)} runs as {canonical_mode(mode)}"
    allowed = ", ".join(sorted(MTP_WORDS | NGRAM_WORDS))
    findings.add(
        "unknown_spec_mode",
        place,
        f"{message}; {words} {count} for nothing in a list{_by_flag(unused)}",
        found=shown(mode),
        allowed=f"in a list: {allowed}",
        severity="warning",
    )


def _by_flag(words: Iterable[str]) -> str:
    """How to get a type that engines have and this project has no mode for; empty for other words."""
    for word in (word.strip().lower() for word in words):
        if word in TYPES_WITHOUT_MODE:
            return f'; {word} is a type of the engine: engine_args = ["--spec-type", "{word}"] uses it'
    return ""


def _note_missing_drafter(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """Nobody searches a drafter for these modes, so the models run with n-grams instead (05 §6.1 D23)."""
    mode = entry.table.mode
    if canonical_mode(mode) not in MODES_OF_DRAFTER or "draft" in entry.raw:
        return
    place = entry.place.child("mode")
    findings.add(
        "draft_missing",
        place,
        f"{place.name}: {shown(mode)} needs draft, the model that drafts, and there is none: models draft"
        " with n-grams until there is",
        found=shown(mode),
        allowed="draft = a path or a hub source beside it",
        severity="warning",
    )


def _note_unused_drafter(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """A drafter that would never be loaded is a mistake in one of the two lines (05 §2.5)."""
    written = entry.table.mode
    mode = canonical_mode(written)
    if entry.table.draft is None or mode in MODES_WITH_DRAFTER:
        return
    place = entry.place.child("draft").key
    runs_as = "" if written == mode else f", which runs as {mode},"
    message = f"{place.name}: mode {shown(written)}{runs_as} drafts without a model"
    findings.add(
        "draft_unused",
        place,
        f"{message}; remove draft, or choose another mode",
        found=shown(written),
        allowed=", ".join(MODES_WITH_DRAFTER),
    )


def _note_unused_depth(entry: Entry[SpeculationTable], findings: Findings) -> None:
    """Engines once had one option for both lengths, so some write the one and mean the other."""
    mode, depth = canonical_mode(entry.table.mode), entry.table.depth
    if not isinstance(depth, int) or mode in MODES_WITH_DRAFTER:
        return
    place = entry.place.child("depth").key
    is_ngram, least = mode == "ngram" and "ngram" not in entry.bad_keys, entry.table.ngram.min
    hint = f"; ngram.max is the length of its drafts, not below ngram.min = {least}" if is_ngram else ""
    findings.add(
        "depth_unused",
        place,
        f"{place.name} has no effect with mode {mode}{hint}",
        found=str(depth),
        suggestion=f"ngram.max = {depth}" if is_ngram and depth >= least else "",
        severity="warning",
    )
