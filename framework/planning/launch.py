"""The launch plan of one replica: request and facts in, command line, environment and reasons out. Pure.

Called by runtime.planner: `plan_launch` makes the launch as it is asked for, without a place; `directed`
sends it somewhere. The fingerprint is of what was asked: what is free at the moment changes the place, and
makes no other launch of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from framework.engines.args import context
from framework.engines.child_env import child_environment, declared_environment
from framework.engines.command_line import Directions, LineInputs, build_sections
from framework.engines.fingerprint import fingerprint
from framework.engines.granted import grant
from framework.engines.library_path import LibraryPath
from framework.engines.spec_args import DRAFT_DEVICE_FLAGS, without_speculation
from framework.engines.tuning import tuning_variables
from framework.engines.visibility import show_only
from framework.models.file_set import FileSet
from framework.planning.line_settings import line_of
from framework.planning.memory_reasons import context_above_training
from framework.planning.placement.manual import granted_experts, granted_ratio, usable_ratio
from framework.planning.pool_hardware import is_host_pool
from framework.planning.slot_saving.grant import WHOLE_CACHE, CacheKind, saves_slots, why_unsaved
from framework.planning.speculation.decide import decide_speculation
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, Withheld
from framework.values.reason import Failure, Reason, Refused
from framework.values.reasoning import NO_REASONING, ReasoningFacts
from framework.values.request import ModelRequest
from framework.values.speculation import NO_FACTS, SpecFacts, SpecInputs

# Newest first.
DRAFT_DEVICE_SPELLINGS = ("--spec-draft-device", "--device-draft")


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
    reasoning: ReasoningFacts = NO_REASONING
    """What requests may ask of it."""
    notes: tuple[Reason, ...] = ()
    """What is worth knowing about the files."""
    moe_layers: int | None = None
    """Layers that have experts; None is not known."""
    leading_dense: int = 0
    """Layers before the first of them."""
    cache_kind: CacheKind = WHOLE_CACHE
    spec: SpecFacts = NO_FACTS
    is_accelerated: bool = False
    """Whether decoding will run on a GPU."""
    withheld: Withheld = NOTHING_WITHHELD


@dataclass(frozen=True)
class Place:
    """Where a launch is sent, by the names that everybody sees. What is None stays as it is asked for."""

    devices: tuple[str, ...]
    """In the order in which they get layers; none for host memory alone."""
    listed: tuple[Device, ...]
    """All that the engine could see."""
    layers: int | None = None
    """On GPUs; None leaves that to the fit step or to manual mode."""
    experts: int = 0
    shares: tuple[int, ...] = ()
    is_tensor: bool = False
    context: int | None = None
    slots: int | None = None
    cache_types: tuple[str | None, str | None] | None = None
    cache_ram_mib: int | None = None


def plan_launch(request: ModelRequest, replica: int, facts: LaunchFacts) -> LaunchPlan:
    """The launch, without a place. Raises Refused for what no start could survive (06 §14.2)."""
    if facts.caps.conclusive and not facts.caps.has("--model"):
        raise Refused(Failure(_not_an_engine(request, facts.binary)))
    declared = declared_environment(request, facts.environ, secret_names=facts.secret_names)
    granted = grant(request, facts.caps, declared)
    wish = SpecInputs(
        policy=request.spec,
        facts=facts.spec,
        caps=facts.caps,
        args=request.extra_args,
        is_accelerated=facts.is_accelerated,
        is_native=request.engine.kind == "native",
    )
    spec = decide_speculation(replace(wish, withheld=facts.withheld.drafting))
    experts, clamped = _cpu_moe(request, facts)
    unsaved = why_unsaved(request, facts.caps, declared, projector=facts.projector, kind=facts.cache_kind)
    is_saved = request.slot_save and unsaved is None
    own = _Own(granted.slots, granted.cache_types, spec.block, experts, is_saved)
    sections = build_sections(_line(request, facts, own, request.n_ctx))
    env = child_environment(
        request, facts.environ, facts.libraries, sections, secret_names=facts.secret_names
    )
    asked = context(request.extra_args, request.n_ctx)
    more = (reason for reason in (clamped, unsaved) if reason is not None)
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
        reasons=(*granted.reasons, *more, *facts.notes, *_notes(facts, asked)),
        shards=facts.files.shards,
        template=request.template,
        projector=facts.projector,
        spec_inputs=wish,
        reasoning=facts.reasoning,
    )


def undrafted(plan: LaunchPlan, facts: LaunchFacts, why: Reason) -> tuple[LaunchPlan, LaunchFacts]:
    """The same launch without drafting, and the facts that it is made of. It stays the launch that was
    asked for: what makes room for a drafter comes and goes.
    """
    without = replace(facts, withheld=replace(facts.withheld, drafting=why))
    made = plan_launch(plan.request, plan.replica, without)
    return replace(made, fingerprint=plan.fingerprint), without


def directed(plan: LaunchPlan, facts: LaunchFacts, place: Place) -> LaunchPlan:
    """The launch sent to a place: its line, its environment, and what it will be granted.

    Raises Refused (`rpc_unsupported`) where the place is remote and this engine cannot go there.
    """
    request = plan.request
    chosen = [device for name in place.devices for device in place.listed if device.name == name]
    if any(device.endpoint for device in chosen) and facts.caps.conclusive and not facts.caps.has("--rpc"):
        raise Refused(Failure(_rpc_unsupported(request, facts.binary)))
    ratio, dropped = granted_ratio(request.tensor_split, len(chosen))
    shown = show_only(plan.env, chosen, place.listed)
    names = {device.name: shown.child_names.get(device.name, device.name) for device in chosen}
    directions = Directions(
        devices=tuple(names.values()),
        servers=shown.servers,
        layers=place.layers,
        experts=place.experts,
        shares=place.shares,
        tensor=place.is_tensor,
        cache_ram_mib=place.cache_ram_mib,
    )
    slots, types = place.slots or plan.slots, place.cache_types or plan.cache_types
    block = (*plan.spec.block, *_drafter_devices(plan, place, tuple(names.values())))
    own = _Own(slots, types, block, _cpu_moe(request, facts)[0], saves_slots(plan))
    tokens = request.n_ctx if place.context is None else place.context
    line = replace(_line(request, facts, own, tokens), tensor_split=ratio, directions=directions)
    tuning = tuning_variables(chosen, datacenter_tuning=request.engine.datacenter_tuning)
    notes = (dropped,) if dropped is not None and request.memory_mode == "manual" else ()
    return replace(
        plan,
        sections=build_sections(line),
        env={**tuning, **shown.env},
        slots=slots,
        context=plan.context if place.context is None else place.context,
        cache_types=types,
        placement=replace(plan.placement, devices=tuple(names), child_names=names),
        reasons=(*plan.reasons, *notes),
    )


def _drafter_devices(plan: LaunchPlan, place: Place, devices: tuple[str, ...]) -> tuple[str, ...]:
    """A separate drafter goes to every GPU that its engine sees, whatever the model's own devices are, unless
    it is told which ones; one without layers there would still compute on them."""
    draft = line_of(plan).draft
    is_told = not DRAFT_DEVICE_FLAGS.isdisjoint(plan.request.extra_args)
    if draft is None or draft.kind == "head" or is_told:
        return ()
    flag = next((flag for flag in DRAFT_DEVICE_SPELLINGS if plan.caps.has(flag)), None)
    has_gpus = any(device.kind != "cpu" for device in place.listed)
    if flag is None or not (has_gpus or is_host_pool(plan.request.pool)):  # nobody lists GPUs for those
        return ()
    return (flag, "none" if draft.on_cpu else ",".join(devices) or "none")


@dataclass(frozen=True)
class _Own:
    """What was granted of a request."""

    slots: int
    cache_types: tuple[str | None, str | None]
    spec_block: tuple[str, ...]
    experts: int | None
    slot_saving: bool


def _line(request: ModelRequest, facts: LaunchFacts, own: _Own, tokens: int) -> LineInputs:
    return LineInputs(
        request=_started(request, facts),
        caps=facts.caps,
        entry=facts.binary.entry,
        main_gguf=facts.files.main,
        slots=own.slots,
        context=tokens,
        cache_types=own.cache_types,
        spec_block=own.spec_block,
        cpu_only="cpu" in request.pool.devices,
        cpu_moe=own.experts,
        tensor_split=usable_ratio(request.tensor_split),
        projector=facts.projector,
        template=request.template is not None,
        slot_saving=own.slot_saving,
        thinking=facts.thinking,
    )


def _started(request: ModelRequest, facts: LaunchFacts) -> ModelRequest:
    """The request as its line is made of it. The user's own types of speculation cannot be taken back by
    anything later on the line, so where drafting is withheld they are left out (05 §6.1 D1).
    """
    if facts.withheld.drafting is None:
        return request
    return replace(request, extra_args=without_speculation(request.extra_args))


def _not_an_engine(request: ModelRequest, binary: EngineBinary) -> Reason:
    return Reason(
        "not_an_engine",
        f"{binary.entry} is not a llama-server: its help text knows no --model.",
        f"Set engines.{request.engine.name}.binary to a llama-server.",
        "error",
        {"path": str(binary.entry)},
    )


def _rpc_unsupported(request: ModelRequest, binary: EngineBinary) -> Reason:
    return Reason(
        "rpc_unsupported",
        f"Pool '{request.pool.name}' has remote devices, and {binary.entry} knows no --rpc.",
        "Use a llama-server that was built with GGML_RPC, or a pool of devices of this machine.",
        "error",
        {"path": str(binary.entry), "pool": request.pool.name},
    )


def _cpu_moe(request: ModelRequest, facts: LaunchFacts) -> tuple[int | None, Reason | None]:
    if request.memory_mode != "manual" or request.gpu_layers < 0:
        return None, None
    return granted_experts(request.n_cpu_moe, facts.moe_layers, facts.leading_dense)


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
