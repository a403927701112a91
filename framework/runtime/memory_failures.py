"""Failure classes of starts that found too little memory (06 §14.1 rows 8 and 13a). Pure.

Called by runtime.failures.
"""

from __future__ import annotations

from framework.runtime.allocation import fit_was_forbidden, refused_allocation, too_large_tensor
from framework.runtime.start_end import StartEnd, Told
from framework.runtime.start_signs import blames_memory
from framework.values.plan import FitPlan
from framework.values.units_text import size

SIGKILL = 9


def killed(end: StartEnd) -> Told | None:
    """Ended by SIGKILL, which nobody but the system sends here."""
    if end.signal != SIGKILL:
        return None
    return (
        "killed_by_os",
        "The system killed the engine while it loaded the model, most likely for lack of memory."
        f"{_planned_memory(end.plan.fit)}",
        "Use a smaller quantisation or a shorter context, or free memory.",
    )


def out_of_memory(end: StartEnd) -> Told | None:
    """An allocation was refused, or a buffer is larger than its device takes in one piece."""
    if not blames_memory(end):
        return None
    remedy = "Use a shorter context, fewer slots, a smaller kv_cache type or a smaller quantisation."
    if fit_was_forbidden(end.told):
        remedy = (
            f"Remove models.{end.plan.request.id}.placement.gpu_layers: a fixed number of layers keeps the"
            " engine from fitting the model. Or use a shorter context or a smaller quantisation."
        )
    too_large = too_large_tensor(end.told)
    if too_large is not None:
        tensor, device = too_large
        told = f"{device} does not take a buffer as large as {tensor} of this model would be."
        return "out_of_memory", f"{told}{_planned_memory(end.plan.fit)}", remedy
    refused = f"{_refused_memory(end)}{_planned_memory(end.plan.fit)}"
    return "out_of_memory", f"The device had less memory than the model needs.{refused}", remedy


def planned_bytes(fit: FitPlan) -> dict[str, int]:
    """What the plan said that each device has to hold from the start."""
    return {device: need for device in fit.total_bytes if (need := fit.needed_bytes(device))}


def _refused_memory(end: StartEnd) -> str:
    found = refused_allocation(end.told)
    if found is None:
        return ""
    purpose = f" for {found.purpose}" if found.purpose else ""
    return f" {size(found.bytes)}{purpose} were refused on {found.device}."


def _planned_memory(fit: FitPlan) -> str:
    """What the plan knew of the devices: of those that were too small, or of all where none was."""
    budget = fit.budget_bytes
    needed = {device: need for device, need in planned_bytes(fit).items() if device in budget}
    full = {device: need for device, need in needed.items() if need > budget[device]}
    parts = [
        f"{size(need)} of {name}, where {size(budget[name])} could be used"
        for name, need in (full or needed).items()
    ]
    return f" Planned were {' and '.join(parts)}." if parts else ""
