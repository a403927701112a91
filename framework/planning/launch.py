"""The launch plan of one replica: request and facts in, command line, environment and reasons out. Pure.

Called by runtime.planner, which adds the memory plan (planning.launch_memory): that changes neither command
line nor fingerprint, since the engine's own fit step decides what goes where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framework.engines.args import context, owns_speculation
from framework.engines.child_env import child_environment, declared_environment
from framework.engines.command_line import LineInputs, build_sections
from framework.engines.fingerprint import fingerprint
from framework.engines.granted import grant
from framework.engines.library_path import LibraryPath
from framework.models.file_set import FileSet
from framework.planning.memory_reasons import context_above_training
from framework.planning.speculation import resolve_speculation
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.plan import LaunchPlan
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest


@dataclass(frozen=True)
class LaunchFacts:
    """What was found out for one launch."""

    binary: EngineBinary
    caps: Capabilities
    libraries: LibraryPath
    files: FileSet
    file_ids: tuple[FileId, ...]
    """Every file of the launch: shards, projector, adapters."""
    environ: Mapping[str, str]
    """The manager's own environment; what a child may inherit of it is decided here."""
    secret_names: tuple[str, ...] = ()
    context_train: int = 0
    """Tokens the model was trained for, 0 when the header does not say."""
    projector: Path | None = None
    thinking: Mapping[str, bool | str | float] = field(default_factory=dict)
    """Arguments of the chat template for the reasoning that was asked for."""
    notes: tuple[Reason, ...] = ()
    """What is worth knowing about the files."""


def plan_launch(request: ModelRequest, replica: int, facts: LaunchFacts) -> LaunchPlan:
    """The plan. Raises values.reason.Refused for what no start could survive (06 §14.2)."""
    if facts.caps.conclusive and not facts.caps.has("--model"):
        raise Refused(Failure(_not_an_engine(request, facts.binary)))
    declared = declared_environment(request, facts.environ, secret_names=facts.secret_names)
    granted = grant(request, facts.caps, declared)
    spec = resolve_speculation(request.spec, facts.caps, user_owned=owns_speculation(request.extra_args))
    sections = build_sections(
        LineInputs(
            request=request,
            caps=facts.caps,
            entry=facts.binary.entry,
            main_gguf=facts.files.main,
            slots=granted.slots,
            context=request.n_ctx,
            cache_types=granted.cache_types,
            spec_block=spec.block,
            cpu_only="cpu" in request.pool.devices,
            cpu_moe=_cpu_moe(request),
            projector=facts.projector,
            template=request.template is not None,
            thinking=facts.thinking,
        )
    )
    env = child_environment(
        request, facts.environ, facts.libraries, sections, secret_names=facts.secret_names
    )
    asked = context(request.extra_args, request.n_ctx)
    return LaunchPlan(
        request=request,
        replica=replica,
        main_gguf=facts.files.main,
        file_bytes=facts.files.total_bytes,
        engine=facts.binary,
        caps=facts.caps,
        spec=spec,
        sections=sections,
        env=env,
        context=asked,
        context_train=facts.context_train,
        slots=granted.slots,
        unified=granted.unified,
        cache_types=granted.cache_types,
        fingerprint=fingerprint(sections, env, (facts.binary.file, *facts.file_ids)),
        reasons=(*granted.reasons, *facts.notes, *_notes(facts, asked)),
        template=request.template,
        projector=facts.projector,
    )


def _not_an_engine(request: ModelRequest, binary: EngineBinary) -> Reason:
    return Reason(
        "not_an_engine",
        f"{binary.entry} is not a llama-server: its help text knows no --model.",
        f"Set engines.{request.engine.name}.binary to a llama-server.",
        "error",
        {"path": str(binary.entry)},
    )


def _cpu_moe(request: ModelRequest) -> int | None:
    manual = request.memory_mode == "manual" and request.gpu_layers >= 0
    return request.n_cpu_moe if manual and request.n_cpu_moe > 0 else None


def _notes(facts: LaunchFacts, asked: int) -> list[Reason]:
    notes = []
    if not facts.caps.conclusive:
        notes.append(
            Reason(
                "probe_inconclusive",
                f"What this engine can do is not certain: it {facts.caps.fault or 'did not say'}.",
                "Check that the binary runs: `paddock engines`.",
                "warning",
            )
        )
    if facts.context_train and asked > facts.context_train:
        notes.append(context_above_training(asked, facts.context_train))
    return notes
