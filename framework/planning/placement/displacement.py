"""Whether drafting takes the memory that layers would have had, and what is done then (05 §9, SP-04). Pure.

Called by planning.launch_place with the best place of a launch with and without drafting. A layer in host
memory costs more than any drafts bring: mode `auto` gives up drafting, other modes keep it and are told.
"""

from __future__ import annotations

from framework.planning.placement.choice import Choice
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.speculation import drafts_by_model
from framework.values.units_text import counted

AUTO = "auto"
DISPLACED = "draft_displaces_layers"
"""Code of the reason for drafting that takes the place of layers."""


def gives_way(plan: LaunchPlan) -> bool:
    """Whether drafting of this launch is there because it was thought to help, not because it was asked."""
    return plan.spec.requested == AUTO and drafts_by_model(plan.spec.resolved)


def is_displaced(drafting: Choice | None, plain: Choice | None) -> bool:
    """Whether more lies in host memory with drafting; None is a launch that fits nowhere."""
    if plain is None:
        return False
    return drafting is None or _in_host_memory(drafting) > _in_host_memory(plain)


def draft_displaces_layers(drafting: Choice | None, plain: Choice, *, is_kept: bool) -> Reason:
    """What drafting would cost, or costs where it `is_kept`."""
    without = _on_gpus(plain)
    with_it = "there is no room" if drafting is None else _on_gpus(drafting)
    found = f"with it {with_it}; without it {without}"
    remedy = "A shorter context, a smaller kv_cache or fewer slots make room for both; "
    if is_kept:
        message = (
            f"Drafting displaces layers of the model: {found}. That mostly costs more than drafts bring."
        )
        remedy += "the modes auto and off leave drafting out."
    else:
        message = f"It runs without drafting, which would displace layers: {found}."
        remedy += "another mode than auto drafts all the same."
    return Reason(
        "draft_displaces_layers",
        message,
        remedy,
        "warning",
        {"with": _counts(drafting), "without": _counts(plain), "layers": plain.all_layers},
    )


def _in_host_memory(choice: Choice) -> tuple[int, int]:
    return choice.all_layers - choice.gpu_layers, choice.cpu_experts


def _on_gpus(choice: Choice) -> str:
    experts = f", {choice.cpu_experts} of them without their experts" if choice.cpu_experts else ""
    return f"{choice.gpu_layers} of {counted(choice.all_layers, 'layer')} are on GPUs{experts}"


def _counts(choice: Choice | None) -> dict[str, int] | None:
    if choice is None:
        return None
    return {"gpu_layers": choice.gpu_layers, "cpu_experts": choice.cpu_experts}
