"""What of a device may be planned with (03 §9.4). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware
from framework.values.plan import FitPlan, MemoryLine


def usable_bytes(free: int, total: int, fraction: float, *, reserve: int = 0) -> int:
    """Of a GPU's free memory, what may be taken so that (1 - fraction) of the whole stays free.

    `total` 0 means unknown: then the fraction counts of what is free.
    """
    usable = max(0.0, free - (1 - fraction) * total) if total > 0 else free * fraction
    return max(0, int(usable) - reserve)


def budgets(hardware: Hardware) -> dict[str, int]:
    """Usable bytes by device. Host memory gives all that is free, less its reserve; unknown is left out."""
    reserves = hardware.reserves_bytes
    found = {
        gpu.name: usable_bytes(
            gpu.free_bytes, gpu.total_bytes, hardware.fill_fraction, reserve=reserves.get(gpu.name, 0)
        )
        for gpu in hardware.gpus
    }
    if hardware.host_total_bytes or hardware.host_free_bytes:
        found[HOST] = max(0, hardware.host_free_bytes - reserves.get(HOST, 0))
    most = hardware.ceilings_bytes
    return {name: min(size, most.get(name, size)) for name, size in found.items()}


def holds(plan: FitPlan, hardware: Hardware) -> bool | None:
    """Whether a plan's lines stay within what can be used; None where nothing is known of that."""
    if not plan.budget_bytes:
        return None
    if any(plan.needed_bytes(device) > budget for device, budget in plan.budget_bytes.items()):
        return False
    on_host = plan.needed_bytes(HOST)
    shared = on_host + sum(plan.needed_bytes(name) for name in hardware.unified)
    if hardware.unified and HOST in plan.budget_bytes and shared > plan.budget_bytes[HOST]:
        return False
    mapped = sum(line.bytes for line in plan.lines if line.device == HOST and line.mapped)
    return hardware.mapped_limit_bytes is None or on_host + mapped <= hardware.mapped_limit_bytes


def with_lines(plan: FitPlan, lines: Sequence[MemoryLine], hardware: Hardware) -> FitPlan:
    """The plan with these lines: sums by device, what of each device can be used, and whether it fits."""
    totals: Counter[str] = Counter()
    for line in lines:
        totals[line.device] += line.bytes
    usable = budgets(hardware)
    found = replace(
        plan,
        lines=tuple(lines),
        total_bytes=dict(totals),
        budget_bytes={name: usable[name] for name in totals if name in usable},
    )
    return replace(found, fits=holds(found, hardware))
