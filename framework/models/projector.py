"""The projector that a launch uses, if any: the one path that planning and the engine get (02 §12.6, §12.7).

Called at plan time, in a worker thread. `auto` never keeps a model from serving text; a projector that is
named was wanted, so that one is refused where it cannot work.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from framework.models.companions import Companion
from framework.models.facts import FactsReader, ModelFacts
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.pins import is_known_to_lack
from framework.models.regular_file import ABSENT, file_fault
from framework.values.reason import Failure, Reason, Refused


def launch_projector(
    asked: Path | Literal["auto"] | None, source: ResolvedSource, facts: ModelFacts, reader: FactsReader
) -> Companion:
    """The projector for the model of `source`; reasons say why one that is there is not used.

    Raises `Refused` with `model_missing` or `companion_unfit` for one that is named and cannot be used.
    """
    if asked is None:
        return Companion()
    if asked != "auto":
        return _named(asked, facts, reader)
    if source.source.repo is None:
        beside = reader.projector_beside(facts)
        return beside if beside.path or beside.reasons else _not_found(f"beside {source.main.name}")
    if source.projector is None:
        # Before the first download nobody has looked.
        is_known = is_known_to_lack(source.main, "projector")
        return _not_found(f"in {source.source.repo}") if is_known else Companion()
    fault = reader.projector_fault(source.projector, facts)
    return Companion(source.projector) if fault is None else Companion(None, (fault,))


def _not_found(place: str) -> Companion:
    reason = Reason(
        "projector_not_found",
        f"There is no projector {place}, so the model serves text only.",
        "Name the projector's file in projector, or leave the line out for a model of text.",
    )
    return Companion(None, (reason,))


def _named(path: Path, facts: ModelFacts, reader: FactsReader) -> Companion:
    if file_fault(path) == ABSENT:
        raise Refused(Failure(_missing(path)))
    fault = reader.projector_fault(path, facts)
    if fault is not None:
        remedy = 'Name the file that belongs to this model, or write projector = "none" to serve text only.'
        raise Refused(Failure(replace(fault, severity="error", remedy=remedy)))
    return Companion(path)


def _missing(path: Path) -> Reason:
    return Reason(
        "model_missing",
        f"The file {path} named by projector does not exist.",
        "Correct projector, or put the file there.",
        "error",
        {"path": str(path), "field": "projector"},
    )
