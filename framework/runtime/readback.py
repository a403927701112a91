"""What a ready engine really runs, read from its own answers and compared with the plan (06 §10)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.engines.buffers_log import read_buffers
from framework.engines.draft_refusal import draft_refusal
from framework.engines.offload_log import OffloadVerdict, offload_verdict
from framework.engines.spec_args import drafter, spec_types
from framework.runtime.engine_client import EngineClient
from framework.runtime.held_memory import host_memory_of
from framework.runtime.launch import Running
from framework.values.device import HOST_NAME
from framework.values.plan import LaunchPlan, LaunchResult
from framework.values.reason import Reason

NOTHING_DRAFTS = "none"
# What some builds take a drafter for that stands on the line without a type.
ONLY_DRAFTER = "draft-simple"


async def read_back(
    client: EngineClient,
    running: Running,
    plan: LaunchPlan,
    props: Mapping[str, Any],
    started_with: Iterable[str] = (),
) -> LaunchResult:
    """The result of a healthy launch, without its attempts. `started_with` are the lines of its start."""
    slots_seen = await client.slots(running.port, running.key)
    lines = tuple(started_with)
    slots = _positive(props.get("total_slots")) or plan.slots
    per_slot = _positive(_settings(props).get("n_ctx"))
    # 06 §10.2: a unified cache is one context shared by all slots.
    context = per_slot * (1 if plan.unified else slots) if per_slot else None
    modalities = props.get("modalities")
    kinds = modalities if isinstance(modalities, Mapping) else {}
    allocated, told = allocated_bytes(plan, lines), read_buffers(lines).lines
    host = await asyncio.to_thread(host_memory_of, running.child.pid)
    verdict = offload_verdict(lines)
    speculation, why_not = _speculation(plan, slots_seen, lines)
    fallback = _cpu_fallback(plan, verdict)
    return LaunchResult(
        "ready",
        degradations=(*_differences(plan, context, slots), *([fallback] if fallback else ())),
        context=context or plan.context or None,
        slots=slots,
        speculation=speculation,
        speculation_reason=why_not,
        vision=kinds.get("vision") is True,
        audio=kinds.get("audio") is True,
        offload=_offload(plan, verdict, allocated),
        allocated_bytes=allocated,
        buffers=tuple(replace(line, device=_outside(plan, line.device)) for line in told),
        held_bytes={} if host is None else {HOST_NAME: host.own_bytes},
    )


def allocated_bytes(plan: LaunchPlan, lines: Iterable[str]) -> dict[str, int]:
    """What the engine says it took of each device, by the names that everybody else uses."""
    return {_outside(plan, name): size for name, size in read_buffers(lines).allocated.items()}


def _outside(plan: LaunchPlan, name: str) -> str:
    """What everybody else calls a device of the engine's."""
    return next((known for known, child in plan.placement.child_names.items() if child == name), name)


def _speculation(
    plan: LaunchPlan, slots: Sequence[Mapping[str, Any]] | None, lines: Iterable[str]
) -> tuple[str, Reason | None]:
    """What drafts, and why nothing does where something was to.

    15 §3: whether a slot can draft is the only true sign; an engine that drops a drafter serves without one.
    """
    drafting = any(slot.get("speculative") is True for slot in slots or ())
    asked = plan.spec.resolved
    if asked == "user":
        asked = ",".join(spec_types(plan.argv)) or NOTHING_DRAFTS
    if asked == NOTHING_DRAFTS and drafting and drafter(plan.argv, plan.env):
        return ONLY_DRAFTER, None
    is_told = any(isinstance(slot.get("speculative"), bool) for slot in slots or ())
    if asked == NOTHING_DRAFTS or drafting or not is_told:
        return asked, None
    return NOTHING_DRAFTS, _speculation_inactive(asked, lines)


def _offload(plan: LaunchPlan, verdict: OffloadVerdict, allocated: Mapping[str, int]) -> bool | None:
    """Whether the model is on a GPU; with layers kept off on purpose, whether it holds any of one."""
    if _expects_gpu(plan):
        return verdict.on_gpu
    if plan.request.memory_mode == "manual" and plan.request.gpu_layers == 0 and allocated:
        return any(device != HOST_NAME for device in allocated)
    return None


def _expects_gpu(plan: LaunchPlan) -> bool:
    return bool(plan.placement.devices) and plan.placement.gpu_layers != 0


def _differences(plan: LaunchPlan, context: int | None, slots: int) -> Iterator[Reason]:
    # The engine caps each slot at the trained length, which the plan has already said.
    expected = min(plan.context, plan.context_train) if plan.context_train else plan.context
    if context is not None and context < expected:
        yield _context_lowered(plan.context, context)
    if slots != plan.slots:
        yield _ignored("slots", plan.slots, slots)


def _cpu_fallback(plan: LaunchPlan, verdict: OffloadVerdict) -> Reason | None:
    if not _expects_gpu(plan) or verdict.on_gpu is not False:
        return None
    devices = " and ".join(plan.placement.devices)
    if verdict.saw_gpu:
        found = f"The engine sees a GPU and put nothing of the model there, although {devices} was planned."
        remedy = "Free memory of the GPU or use a shorter context; `paddock logs` shows what was decided."
    else:
        found = f"The model is on the CPU, not on {devices}: the engine could not load its GPU library."
        remedy = "Reinstall the engine, or install the CUDA, ROCm or Vulkan runtime that its build needs."
    evidence = {"planned": list(plan.placement.devices), "saw_gpu": verdict.saw_gpu}
    return Reason("cpu_fallback", found, remedy, "warning", evidence)


def _speculation_inactive(asked: str, lines: Iterable[str]) -> Reason:
    cause, said = draft_refusal(lines)
    quoted = f" It said: {said}" if said else ""
    remedy = (
        "Name a drafter with the vocabulary of this model, or another mode."
        if cause == "vocabulary"
        else "Name a drafter that goes with this model, or another mode; `paddock logs` shows the start."
    )
    return Reason(
        "speculation_inactive",
        f"No slot of the engine can draft, although {asked} is on its command line.{quoted}",
        remedy,
        "warning",
        {"asked": asked, "running": NOTHING_DRAFTS, "said": said},
    )


def _context_lowered(planned: int, got: int) -> Reason:
    return Reason(
        "context_lowered",
        f"The engine allocated a context of {got} tokens, less than the {planned} tokens asked for.",
        "Free memory, use a smaller kv_cache type, or ask for a context that fits.",
        "warning",
        {"planned_tokens": planned, "running_tokens": got},
    )


def _ignored(setting: str, asked: object, running: object) -> Reason:
    return Reason(
        "engine_ignored_setting",
        f"The engine runs with {setting} = {running}, although {asked} was on its command line.",
        "Look at `paddock logs` for why; another build may behave.",
        "warning",
        {"setting": setting, "asked": asked, "running": running},
    )


def _settings(props: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = props.get("default_generation_settings")
    return settings if isinstance(settings, Mapping) else {}


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
