"""Whether a process holds more memory than its plan set aside, and what is said then. Pure.

Whoever holds more takes it from models that are planned later: they find less than was counted for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from framework.values.device import HOST_NAME, Device
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.units_text import size

MEMORY_OVER_PLAN = "memory_over_plan"
# What a driver, an allocator and threads take besides differs from build to build by so much.
LEAST_OVER_BYTES = 256 << 20
OVER_SHARE = 0.05


def planned_bytes(plan: LaunchPlan, devices: Iterable[Device]) -> dict[str, int]:
    """What may be held of each device that was planned with, with all that grows while it serves.

    Nothing where the engine's own fit step decided, since nobody knew what it takes. Memory of a GPU that no
    driver tells of may be the host's, so there it counts as host memory as well.
    """
    needs, grows = plan.placement.needs_bytes, plan.placement.grows_bytes
    if plan.fit.fits is None:
        return {}
    sizes = {name: need + grows.get(name, 0) for name, need in needs.items() if need}
    if HOST_NAME in sizes:
        inside = [d.name for d in devices if d.kind == "gpu" and (d.is_unified or not (d.uuid or d.bus_id))]
        sizes[HOST_NAME] += sum(sizes.get(name, 0) for name in inside)
    return sizes


def over_plan(held: Mapping[str, int], planned: Mapping[str, int]) -> dict[str, int]:
    """Bytes above the plan by device, where that is more than differs from build to build."""
    over = {name: have - planned[name] for name, have in held.items() if name in planned}
    return {name: more for name, more in over.items() if more > tolerance_bytes(planned[name])}


def tolerance_bytes(planned: int) -> int:
    """How far from what was planned or reported is nothing to tell."""
    return max(LEAST_OVER_BYTES, int(planned * OVER_SHARE))


def memory_over_plan(
    model: str, held: Mapping[str, int], planned: Mapping[str, int], over: Mapping[str, int]
) -> Reason:
    """It holds more than was set aside for it, and goes on doing so."""
    parts = [f"{size(held[n])} of {n} where {size(planned[n])} were planned" for n in over]
    return Reason(
        "memory_over_plan",
        f"The process holds {' and '.join(parts)}: other models are planned with memory that is not there.",
        f"`paddock plan {model} --measure` has the engine count, and later plans use its numbers; a larger"
        " `reserve` of the pool leaves room meanwhile.",
        "warning",
        {
            "held_bytes": {name: held[name] for name in over},
            "planned_bytes": {name: planned[name] for name in over},
            "over_bytes": dict(over),
        },
    )
