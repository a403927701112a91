"""How large a prompt cache may grow in host memory (FM-17). Pure.

Every engine keeps prompts in host memory, up to 8 GiB unless it is told otherwise, however much of the model
is on GPUs. Where that is more than is left there, it is given a limit.
"""

from __future__ import annotations

from dataclasses import replace

from framework.planning.line_settings import LineSettings, owns_prompt_cache
from framework.planning.memory.budget import budgets
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware
from framework.planning.placement.choice import Choice
from framework.planning.placement.room import Holdings
from framework.values.plan import FitPlan, LaunchPlan
from framework.values.reason import Reason
from framework.values.units_text import size

MIB = 1 << 20
LABEL = "prompt_cache"
STEP_MIB = 256
# Others want to have one as well.
SHARE = 2


def limited(
    choice: Choice, line: LineSettings, plan: LaunchPlan, hardware: Hardware, ours: Holdings
) -> tuple[Choice, tuple[Reason, ...]]:
    """The choice with a limit that host memory has room for, where the engine's own would be too much."""
    wanted = line.host.cache_ram_bytes
    room = _room_bytes(choice.fit, hardware, ours)
    is_ours = plan.caps.has("--cache-ram") and not owns_prompt_cache(plan.request.extra_args, plan.env)
    if room is None or wanted <= room or not is_ours or not _line_bytes(choice.fit):
        return choice, ()
    mib = max(0, room) // SHARE // MIB // STEP_MIB * STEP_MIB
    reason = Reason(
        "prompt_cache_limited",
        f"The prompt cache may take {size(mib * MIB)} of host memory instead of {size(wanted)}: no more than"
        f" {size(max(0, room))} is left there.",
        'Free host memory, or set a limit of your own: engine_args = ["--cache-ram", "MiB"].',
        evidence={"limit_bytes": mib * MIB, "default_bytes": wanted, "room_bytes": max(0, room)},
    )
    return replace(choice, cache_ram_mib=mib, fit=_with_cache(choice.fit, mib * MIB)), (reason,)


def _room_bytes(fit: FitPlan, hardware: Hardware, ours: Holdings) -> int | None:
    """What is left for it once everything else has grown as far as it can; None where that is not known."""
    available = budgets(hardware).get(HOST)
    if available is None:
        return None
    others = sum(
        line.bytes for line in fit.lines if line.device == HOST and line.grows and line.label != LABEL
    )
    return available - fit.needed_bytes(HOST) - others - ours.grows.get(HOST, 0)


def _line_bytes(fit: FitPlan) -> int:
    return sum(line.bytes for line in fit.lines if line.label == LABEL)


def _with_cache(fit: FitPlan, size_bytes: int) -> FitPlan:
    less = _line_bytes(fit) - size_bytes
    lines = tuple(replace(line, bytes=size_bytes) if line.label == LABEL else line for line in fit.lines)
    kept = tuple(line for line in lines if line.bytes or line.label != LABEL)
    totals = {name: total - (less if name == HOST else 0) for name, total in fit.total_bytes.items()}
    return replace(fit, lines=kept, total_bytes=totals)
