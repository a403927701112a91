"""Asked, granted, running side by side: the three are different things and stay apart (00 §3). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from framework.api.shapes.plan import granted_cache_json, granted_devices, granted_offload
from framework.dashboard.pages.instance_facts import offload_text
from framework.dashboard.pages.spec_words import (
    AUTO,
    SpecWords,
    asked_depth,
    asked_drafter,
    drafts_apart,
    spec_words,
)
from framework.dashboard.pages.speculation import card_url
from framework.values.instance import InstanceView
from framework.values.plan import FitPlan, LaunchPlan, LaunchResult
from framework.values.request import ModelRequest
from framework.values.units_text import UNKNOWN, counted, size

OFFLOADS = {"auto": "the engine decides", "all": "all layers on the GPU", "none": "nothing on a GPU"}
"""Words for what the plan grants (13 §2)."""

Texts = tuple[str, str, str]
"""Asked, granted, running."""


@dataclass(frozen=True)
class CompareRow:
    """One setting. `differs`: what was granted or runs is not what was asked by name or number."""

    label: str
    asked: str
    granted: str
    running: str
    differs: bool = False


@dataclass(frozen=True)
class CompareTable:
    """All settings of one instance, or of a model that has none yet. Behind `speculation_url` stands more."""

    id: str
    speculation_url: str
    rows: tuple[CompareRow, ...]


def compare_table(element: str, request: ModelRequest, instance: InstanceView | None) -> CompareTable:
    """The table; without a plan nothing was granted, without a process nothing runs."""
    plan = instance.granted if instance else None
    result = instance.running if instance else None
    words = spec_words(request, instance)
    rows = (
        _comparable("Context", *_context(request, plan, result)),
        *_context_limit(plan),
        _comparable("Slots", *_slots(request, plan, result)),
        _comparable("KV cache (K / V)", *_kv_cache(request, plan, result)),
        CompareRow("Speculation", words.asked, words.resolved, words.running, differs=words.differs),
        *_drafting(request, plan, words),
        CompareRow("Devices", *_devices(request, plan, result)),
        CompareRow("Offload", *_offload(request, plan, result)),
        CompareRow("Engine", *_engine(request, plan, instance)),
    )
    return CompareTable(element, card_url(request.id), rows)


def _comparable(label: str, asked: str, granted: str, running: str) -> CompareRow:
    """A setting whose three columns speak the same language, so that they can differ."""
    known = {text for text in (granted, running) if text != UNKNOWN}
    return CompareRow(label, asked, granted, running, differs=asked != AUTO and bool(known - {asked}))


def _planned_context(plan: LaunchPlan | None) -> str:
    if plan is None:
        return UNKNOWN
    if planned := plan.fit.context or plan.context:
        return counted(planned, "token")
    if plan.context_train:
        return f"what fits, at most {counted(plan.context_train, 'token')}"
    return "what fits"


def _context(request: ModelRequest, plan: LaunchPlan | None, result: LaunchResult | None) -> Texts:
    asked = counted(request.n_ctx, "token") if request.n_ctx else AUTO
    granted = _planned_context(plan)
    running = counted(result.context, "token") if result is not None and result.context else UNKNOWN
    return asked, granted, running


def _context_limit(plan: LaunchPlan | None) -> Iterator[CompareRow]:
    """What keeps the context below the longest that was wanted (case MD-11)."""
    granted = plan.fit.context or plan.context if plan is not None else 0
    wanted = plan.request.n_ctx or plan.context_train or 0 if plan is not None else 0
    if plan is not None and 0 < granted < wanted:
        yield CompareRow(
            "Context limited by", f"at most {counted(wanted, 'token')}", limiting_device(plan.fit), UNKNOWN
        )


def limiting_device(fit: FitPlan) -> str:
    """The device of the cache that has the least left, with what is taken of it."""
    holders = {line.device for line in fit.lines if line.label == "kv"}
    taken = {
        name: (fit.needed_bytes(name), fit.budget_bytes[name]) for name in holders & set(fit.budget_bytes)
    }
    if not taken:
        return "the engine's own fit step, by what is free"
    name, (needed, budget) = min(taken.items(), key=lambda item: item[1][1] - item[1][0])
    return f"{name}: {size(needed)} of {size(budget)} that may be planned"


def _slots(request: ModelRequest, plan: LaunchPlan | None, result: LaunchResult | None) -> Texts:
    return (
        counted(request.slots, "slot"),
        UNKNOWN if plan is None else counted(plan.slots, "slot"),
        UNKNOWN if result is None else counted(result.slots, "slot"),
    )


def _kv_cache(request: ModelRequest, plan: LaunchPlan | None, result: LaunchResult | None) -> Texts:
    key, value = request.cache_type
    asked = f"{key or AUTO} / {value or AUTO}" if key or value else AUTO
    if plan is None:
        return asked, UNKNOWN, UNKNOWN
    types = granted_cache_json(plan.fit.cache_types if plan.fit.context else plan.cache_types)
    granted = f"{types['k']} / {types['v']}"
    return asked, granted, granted if result is not None else UNKNOWN


def _drafting(request: ModelRequest, plan: LaunchPlan | None, words: SpecWords) -> Iterator[CompareRow]:
    """Depth and drafter, where one is asked for or used."""
    if not drafts_apart(request.spec, plan):
        return
    yield CompareRow("Draft depth", asked_depth(request.spec), words.depth, words.running_depth)
    yield CompareRow("Drafter", asked_drafter(request.spec), words.drafter, words.running_drafter)


def _devices(request: ModelRequest, plan: LaunchPlan | None, result: LaunchResult | None) -> Texts:
    pool = ", ".join(AUTO if name == "auto" else name for name in request.pool.devices)
    planned = ", ".join(granted_devices(plan)) if plan is not None else ""
    granted = UNKNOWN if plan is None else planned or "the engine decides"
    asked = pool if request.devices is None else ", ".join(request.devices)
    held = {} if result is None else result.allocated_bytes
    running = ", ".join(f"{name} {size(count)}" for name, count in held.items() if count)
    return f"pool {request.pool.name}: {asked}", granted, running or UNKNOWN


def _offload(request: ModelRequest, plan: LaunchPlan | None, result: LaunchResult | None) -> Texts:
    asked = AUTO
    if request.memory_mode == "manual" and request.gpu_layers >= 0:
        asked = _layers(request.gpu_layers, request.n_cpu_moe)
    return (
        asked,
        UNKNOWN if plan is None else _granted_offload(plan),
        offload_text(result.offload if result is not None else None),
    )


def _granted_offload(plan: LaunchPlan) -> str:
    granted = granted_offload(plan)
    if isinstance(granted, str):
        return OFFLOADS[granted]
    return _layers(granted["gpu_layers"], granted["cpu_experts"])


def _layers(on_gpu: int | None, experts_in_ram: int | None) -> str:
    experts = f", experts of {counted(experts_in_ram, 'layer')} in RAM" if experts_in_ram else ""
    layers = "all layers" if on_gpu is None else counted(on_gpu, "layer")
    return f"{layers} on the GPU{experts}"


def _engine(request: ModelRequest, plan: LaunchPlan | None, instance: InstanceView | None) -> Texts:
    asked = f"{request.engine.name} ({request.engine.kind})"
    if plan is None:
        return asked, UNKNOWN, UNKNOWN
    granted = f"{plan.engine.entry.name}, {plan.engine.origin}"
    has_process = instance is not None and instance.pid is not None
    running = f"version {plan.caps.version}" if has_process else UNKNOWN
    return asked, granted, running
