"""The drafter that a launch uses, if any: the one path that planning and the engine get (02 §12.6, 05 §5.6).

Called at plan time, in a worker thread. A drafter never keeps a model from serving: where the one that is
named cannot be used, the model runs without it, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from framework.models.companions import drafter_kind
from framework.models.facts import FactsReader, ModelFacts
from framework.models.file_set import FileSet
from framework.models.hub.facts import ResolvedSource
from framework.values.reason import Reason, Refused
from framework.values.request import SpecPolicy
from framework.values.speculation import DrafterKind

OTHER_ONE = "Name the drafter that belongs to this model in `draft` of the speculation table."


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
    # What is no regular file, such as a pipe, must not even be opened.
    if not path.is_file():
        return FoundDrafter(reasons=(*told, _missing(path)))
    try:
        drafter = reader.read(path, template="")  # its own is never used
    except Refused as refusal:
        return FoundDrafter(reasons=(*told, _unusable(path, facts, refusal.failure.reason)))
    fault = reader.drafter_fault(drafter, facts, is_named=is_named)
    if fault is not None:
        return FoundDrafter(reasons=(*told, replace(fault, remedy=OTHER_ONE) if is_named else fault))
    kind = drafter_kind(drafter.files.main.name, drafter.header)
    return FoundDrafter(drafter.files, kind, (*told, *drafter.files.notes))


def _missing(path: Path) -> Reason:
    return Reason(
        "drafter_missing",
        f"The drafter {path} does not exist, or is no file; the model runs without it.",
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
