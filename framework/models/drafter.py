"""The drafter that a launch uses, if any: the one path that planning and the engine get (02 §12.6, 05 §5.6).

Called at plan time, in a worker thread. A drafter never keeps a model from serving: where the one that is
named cannot be used, the model runs without it, and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from framework.models.companions import drafter_kind
from framework.models.facts import FactsReader, ModelFacts
from framework.models.file_set import FileSet
from framework.models.hub.facts import ResolvedSource
from framework.models.regular_file import file_fault
from framework.values.plain_text import brief
from framework.values.reason import Reason, Refused
from framework.values.request import SpecPolicy
from framework.values.speculation import DrafterKind

OTHER_ONE = "Name the drafter that belongs to this model in `draft` of the speculation table."
# The kind that a mode draws on; `auto` takes what there is.
KIND_OF_MODE: Mapping[str, DrafterKind] = {
    "mtp": "mtp",
    "mtp+ngram": "mtp",
    "draft": "plain",
    "eagle3": "eagle3",
    "dflash": "dflash",
}
WORDS: Mapping[DrafterKind, str] = {
    "mtp": "a drafter that works as a prediction head (MTP)",
    "eagle3": "an EAGLE-3 drafter",
    "dflash": "a DFlash drafter",
    "plain": "a model of its own",
}
MODE_OF_KIND: Mapping[DrafterKind, str] = {
    "mtp": "mtp",
    "eagle3": "eagle3",
    "dflash": "dflash",
    "plain": "draft",
}


@dataclass(frozen=True)
class FoundDrafter:
    """A drafter that was checked against the model; without files, why there is none."""

    files: FileSet | None = None
    kind: DrafterKind | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def path(self) -> Path | None:
        """The file that the engine is given."""
        return None if self.files is None else self.files.main


def find_drafter(
    policy: SpecPolicy, source: ResolvedSource, facts: ModelFacts, reader: FactsReader
) -> FoundDrafter:
    """The drafter for the model of `source`: the file that the policy names, else what came from a hub.

    Nothing is searched beside a local model: a folder may hold several families, and the nearest file is
    often the wrong one.
    """
    is_named = policy.drafter is not None
    named = policy.drafter.path if policy.drafter is not None else None
    # A model with a head has no drafter of its own, whether or not anybody could look.
    told = source.drafter_notes if is_named or not facts.header.nextn_layers else ()
    path = named or source.drafter
    if path is None:
        return FoundDrafter(reasons=told)
    if fault := file_fault(path):
        return FoundDrafter(reasons=(*told, _missing(path, fault)))
    try:
        drafter = reader.read(path, template="")  # its own is never used
    except Refused as refusal:
        return FoundDrafter(reasons=(*told, _unusable(path, facts, refusal.failure.reason)))
    unfit = reader.drafter_fault(drafter, facts, is_named=is_named)
    if unfit is not None:
        return FoundDrafter(reasons=(*told, replace(unfit, remedy=OTHER_ONE) if is_named else unfit))
    kind = _kind(policy.mode, drafter)
    wanted = KIND_OF_MODE.get(policy.mode, kind)
    if is_named and kind != wanted:
        return FoundDrafter(reasons=(*told, _of_another_kind(drafter, facts, policy.mode, kind)))
    same = (_model_itself(facts),) if _is_same(drafter.files.main, facts.files.main) else ()
    return FoundDrafter(drafter.files, kind, (*told, *drafter.files.notes, *same))


def _kind(mode: str, drafter: ModelFacts) -> DrafterKind:
    """How it works. For mode `draft` the name of a file is not enough to make a whole model a head."""
    name = "" if mode == "draft" else drafter.files.main.name
    return drafter_kind(name, drafter.header)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _of_another_kind(drafter: ModelFacts, facts: ModelFacts, mode: str, kind: DrafterKind) -> Reason:
    """A mode and a file that do not go together: engines end on it, or never draft."""
    path, wanted = drafter.files.main, KIND_OF_MODE[mode]
    architecture = brief(drafter.header.architecture or "unknown")
    return Reason(
        "companion_unfit",
        f"{path.name} is not used with {facts.files.main.name}: it is {WORDS[kind]} (architecture"
        f" {architecture}), and the mode {mode} takes {WORDS[wanted]}.",
        f"Set the mode to {MODE_OF_KIND[kind]} for this file, or name another one in `draft`.",
        "warning",
        {"path": str(path), "kind": kind, "wanted_kind": wanted, "architecture": architecture},
    )


def _model_itself(facts: ModelFacts) -> Reason:
    """Nothing is gained where the one that guesses is as slow as the one that checks."""
    return Reason(
        "drafter_is_model",
        f"The drafter is the model's own file, {facts.files.main.name}: it takes the memory twice, and drafts"
        " as slowly as the model answers.",
        "Name a much smaller model of the same vocabulary in `draft`, or use mode auto.",
        evidence={"path": str(facts.files.main)},
    )


def _missing(path: Path, fault: str) -> Reason:
    return Reason(
        "drafter_missing",
        f"The drafter {path} {fault}; the model runs without it.",
        "Correct `draft` of the speculation table, or put the file there; then `paddock reload MODEL`.",
        "warning",
        {"path": str(path), "field": "draft"},
    )


def _unusable(path: Path, facts: ModelFacts, why: Reason) -> Reason:
    """A drafter that is damaged or incomplete, in the words for models of which that is so."""
    return Reason(
        "companion_unfit",
        f"{path.name} is not used with {facts.files.main.name}: {why.message}",
        why.remedy,
        "warning",
        {"path": str(path), "model": str(facts.files.main), "cause": why.code},
    )
