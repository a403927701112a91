"""What a launch needs to know of its files: the model's, its projector, its drafter (02 §12, 05 §3).

Called by runtime.planner in a worker thread. Blocks for some 10 ms per file that was not read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.engines import spec_args
from framework.models.drafter import FoundDrafter, find_drafter
from framework.models.facts import FactsReader, ModelFacts
from framework.models.file_names import billions
from framework.models.file_set import FileSet
from framework.models.hub.facts import ResolvedSource
from framework.models.projector import launch_projector
from framework.models.regular_file import NO_FILES, file_fault
from framework.models.thinking import default_reasoning, launch_reasoning
from framework.planning.speculation.drafter_source import takes_drafter
from framework.runtime.identity import file_id
from framework.values.engine import FileId
from framework.values.plain_text import brief
from framework.values.reason import Failure, Reason, Refused
from framework.values.reasoning import ReasoningFacts
from framework.values.request import ModelRequest
from framework.values.speculation import SpecFacts


@dataclass(frozen=True)
class FileFacts:
    """The files of a launch, checked."""

    files: FileSet
    ids: tuple[FileId, ...]
    """Every file of the launch: shards, projector, drafter, adapters."""
    context_train: int
    """Tokens the model was trained for, 0 when the header does not say."""
    projector: Path | None
    thinking: Mapping[str, bool | str | float]
    """Arguments of the chat template for the reasoning that was asked for."""
    reasoning: ReasoningFacts
    """What requests may ask of it."""
    spec: SpecFacts
    notes: tuple[Reason, ...]
    moe_layers: int | None
    """Layers that have experts; None is not known."""
    leading_dense: int
    no_drafting: Reason | None = None
    """Why nothing may draft: an engine that opens what the arguments name as drafter never gets ready."""


def file_facts(
    request: ModelRequest, source: ResolvedSource, model: ModelFacts, reader: FactsReader
) -> FileFacts:
    """Look at everything that the launch will load. Raises Refused for what no start could survive."""
    projector = launch_projector(request.projector, source, model, reader)
    adapters = [path for path, _ in request.adapters]
    for path in adapters:
        if fault := file_fault(path):
            raise Refused(_missing(path, "adapters", fault))
    takes = takes_drafter(request)
    drafter = find_drafter(request.spec, source, model, reader) if takes else FoundDrafter()
    beside = [*adapters, *([projector.path] if projector.path else [])]
    of_drafter = drafter.files.files if drafter.files is not None else ()
    ids = [file_id(path) for path in (model.files.main, *model.files.shards, *beside)]
    named = model_id(source)
    thinking, unmet = launch_reasoning(request.reasoning, model.template, named, model.header)
    return FileFacts(
        files=model.files,
        ids=(*(identity for identity in ids if identity), *of_drafter),
        context_train=model.header.context_length or 0,
        projector=projector.path,
        thinking=thinking,
        reasoning=reasoning_facts(model, {**thinking, **request.template_kwargs}),
        spec=spec_facts(named, model, drafter),
        notes=(*source.notes, *projector.reasons, *unmet),
        moe_layers=_expert_layers(model),
        leading_dense=model.header.leading_dense_layers or 0,
        no_drafting=own_drafter_fault(request),
    )


def reasoning_facts(model: ModelFacts, started_with: Mapping[str, Any]) -> ReasoningFacts:
    """What requests may ask of a model; `started_with` are the arguments that its template gets anyway."""
    return ReasoningFacts(
        model.template, model.header.architecture, default_reasoning(model.template, started_with)
    )


def own_drafter_fault(request: ModelRequest) -> Reason | None:
    """Why the drafter of a model's own arguments or variables must not be given to an engine.

    An engine waits for ever for a pipe and reads a device without end. What is missing or damaged ends a
    start at once, which is recovered from.
    """
    env = {**request.engine.env, **request.env}
    named = spec_args.drafter(request.extra_args, env)
    if (
        named is None
        or not spec_args.is_drafter_file(request.extra_args, env)
        or not Path(named).is_absolute()
    ):
        return None
    fault = file_fault(Path(named))
    if fault not in NO_FILES:
        return None
    naming = spec_args.drafter_naming(request.extra_args, env)
    return Reason(
        "drafter_missing",
        f"The drafter {brief(named)}, which {naming} names, {fault}; the model runs without drafting.",
        f"Name the file of a model with {naming}, or take it out.",
        "warning",
        {"path": named, "field": naming},
    )


def spec_facts(named: str, model: ModelFacts, drafter: FoundDrafter) -> SpecFacts:
    """What the model brings for drafting; `named` is what it calls itself. Bad headers were refused."""
    header = model.header
    return SpecFacts(
        model_id=named,
        file_name=model.files.main.name,
        header_ok=True,
        nextn_layers=header.nextn_layers or 0,
        kv_lora_rank=header.kv_lora_rank,
        params_b=billions(named, header.size_label),
        drafter=drafter.path,
        drafter_kind=drafter.kind,
        drafter_reasons=drafter.reasons,
    )


def model_id(source: ResolvedSource) -> str:
    """What a model calls itself, where people who named its files say more than its header."""
    return source.source.repo or source.main.stem


def _expert_layers(model: ModelFacts) -> int | None:
    """Layers with experts, as far as the header tells (04 §13.1)."""
    header = model.header
    if not header.n_layers or header.n_experts is None:
        return 0
    return max(0, header.n_layers - (header.leading_dense_layers or 0)) if header.n_experts else 0


def _missing(path: Path, field: str, fault: str) -> Failure:
    return Failure(
        Reason(
            "model_missing",
            f"The file {path} named by {field} {fault}.",
            f"Correct {field}, or put the file there.",
            "error",
            {"path": str(path), "field": field},
        )
    )
