"""What another plan of the same request would change in what runs (07 §3.11). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from framework.values.plan import LaunchPlan


def plan_changes(old: LaunchPlan, new: LaunchPlan) -> list[dict[str, Any]]:
    """`{"field", "from", "to"}` for each: devices, context in tokens, slots, how it is divided, and how much
    of it lies on GPUs. Numbers of bytes are no change: they differ from one look to the next."""
    before, now = _granted(old), _granted(new)
    return [{"field": n, "from": before[n], "to": now[n]} for n in before if before[n] != now[n]]


def sentence(changes: Iterable[Mapping[str, Any]]) -> str:
    """The changes in words; empty where there are none."""
    return ", ".join(f"{one['field']} {_shown(one['from'])} -> {_shown(one['to'])}" for one in changes)


def _granted(plan: LaunchPlan) -> dict[str, Any]:
    place = plan.placement
    return {
        "devices": list(place.devices),
        "context": plan.fit.context or plan.context,
        "slots": plan.slots,
        "split": place.split if len(place.devices) > 1 else "layer",
        "gpu_layers": place.gpu_layers,
        "cpu_experts": place.cpu_experts,
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(value) or "none"
    return "all" if value is None else str(value)
