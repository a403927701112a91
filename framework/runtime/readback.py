"""What a ready engine really runs, read from its own answers and compared with the plan (06 §10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framework.engines.buffers_log import read_buffers
from framework.runtime.engine_client import EngineClient
from framework.runtime.launch import Running
from framework.values.plan import LaunchPlan, LaunchResult
from framework.values.reason import Reason


async def read_back(
    client: EngineClient,
    running: Running,
    plan: LaunchPlan,
    props: Mapping[str, Any],
    started_with: Iterable[str] = (),
) -> LaunchResult:
    """The result of a healthy launch, without its attempts. `started_with` are the lines of its start."""
    slots_seen = await client.slots(running.port, running.key)
    slots = _positive(props.get("total_slots")) or plan.slots
    per_slot = _positive(_settings(props).get("n_ctx"))
    # 06 §10.2: a unified cache is one context shared by all slots.
    context = per_slot * (1 if plan.unified else slots) if per_slot else None
    drafting = any(slot.get("speculative") is True for slot in slots_seen or [])
    modalities = props.get("modalities")
    return LaunchResult(
        "ready",
        degradations=tuple(_differences(plan, context, slots, drafting, known=slots_seen is not None)),
        context=context or plan.context or None,
        slots=slots,
        speculation=plan.spec.resolved if drafting else "none",
        vision=isinstance(modalities, Mapping) and modalities.get("vision") is True,
        allocated_bytes=allocated_bytes(plan, started_with),
    )


def allocated_bytes(plan: LaunchPlan, lines: Iterable[str]) -> dict[str, int]:
    """What the engine says it took of each device, by the names that everybody else uses."""
    outside = {child: name for name, child in plan.placement.child_names.items()}
    return {outside.get(name, name): size for name, size in read_buffers(lines).allocated.items()}


def _differences(
    plan: LaunchPlan, context: int | None, slots: int, drafting: bool, *, known: bool
) -> list[Reason]:
    found = []
    # The engine caps each slot at the trained length, which the plan has already said.
    expected = min(plan.context, plan.context_train) if plan.context_train else plan.context
    if context is not None and context < expected:
        found.append(_context_lowered(plan.context, context))
    if slots != plan.slots:
        found.append(_ignored("slots", plan.slots, slots))
    # 15 §3: whether a slot can draft is the only true sign; a build may drop a drafter without a word.
    if known and plan.spec.resolved not in ("none", "user") and not drafting:
        found.append(_ignored("speculation", plan.spec.resolved, "none"))
    return found


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
