"""What a launch may need after its engine ran out of memory: less of each device, for another plan.

Pure; called by runtime.starting. The memory was there when it was planned: another program took it, or the
plan was too low. Both are answered the same way, a few times, and each time with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.values.device import HOST_NAME
from framework.values.plan import LaunchPlan
from framework.values.reason import Failure, Reason
from framework.values.units_text import size

OUT_OF_MEMORY = "out_of_memory"
SERVER_LOST = "rpc_lost"
# Each further plan may need so much of what the one before it needed: three of them reach about 60 %.
SHRINK = 0.85
PLANS_PER_START = 4


def smaller_needs(plan: LaunchPlan, failure: Failure, *, again: bool) -> Mapping[str, int]:
    """The most bytes that the next plan may need, by device; empty where another plan cannot help.

    `again`: the start was planned smaller before. A remote server that has room for the model but not for
    what is on its way to it hangs up, instead of saying that memory is short.
    """
    codes = {OUT_OF_MEMORY, SERVER_LOST} if again else {OUT_OF_MEMORY}
    if failure.reason.code not in codes or plan.placement.is_delegated:
        return {}
    devices = plan.placement.devices or (HOST_NAME,)
    needs = plan.placement.needs_bytes
    return {name: int(needs[name] * SHRINK) for name in devices if needs.get(name)}


def planned_smaller(most: Mapping[str, int], failure: Failure) -> Reason:
    """Why a plan is smaller than what was free would have allowed."""
    parts = " and ".join(f"{size(limit)} of {name}" for name, limit in most.items())
    return Reason(
        "planned_smaller",
        f"The engine ran out of memory, so it was planned again with at most {parts}."
        f" {failure.reason.message}",
        "Look for other programs that use the device; `paddock reload` plans anew.",
        "warning",
        {"most_bytes": dict(most)},
    )
