"""Why the memory plan of a launch differs from what was asked, in words (04 §17). Pure; for launch_memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from framework.planning.memory.budget import budgets
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import CELL_PADDING, Hardware
from framework.planning.placement.servers import UNNAMED
from framework.values.device import Device
from framework.values.plan import FitPlan, Remedy
from framework.values.pool import Resident
from framework.values.reason import Reason, Severity
from framework.values.units_text import counted, size, tokens

MIB = 1 << 20
# What a driver keeps of a card for itself is nobody's doing.
LEAST_FOREIGN_BYTES = 512 * MIB
# Who needs less of what is free does not lack what others hold.
SHORT_SHARE = 0.95
# A prompt cache below this holds no conversation worth keeping.
LEAST_PROMPT_CACHE_MIB = 256
# A slot with less than one block of cells has no room for a question and its answer.
LEAST_SLOT_TOKENS = CELL_PADDING


def planning_fault(why: str) -> Reason:
    """Nothing can be said about memory (04 §10.13)."""
    return Reason(
        "planning_fault",
        f"Memory is not planned: {why}. The engine's own fit step decides.",
        "The engine's log says what it allocates.",
        evidence={"why": why},
    )


def context_fitted(trained: int, context: int) -> Reason:
    """An automatic context that is shorter than the trained one."""
    return Reason(
        "context_fitted",
        f"The automatic context is {tokens(context)}, as far as memory goes; the model was trained for"
        f" {tokens(trained)}.",
        "A smaller kv_cache leaves room for more; a context that you ask for is kept.",
        evidence={"trained_tokens": trained, "context_tokens": context},
    )


def layers_delegated(plan: FitPlan, most: int) -> Reason:
    """The engine will move something to host memory. `most` are all layers, the output counted as one."""
    moved = 0 if plan.gpu_layers is None else most - plan.gpu_layers
    parts = [f"{moved} of {most} layers"] if moved else []
    parts += [f"the experts of {plan.cpu_experts} layers"] if plan.cpu_experts else []
    return Reason(
        "layers_delegated",
        f"Not everything fits on GPUs with a context of {tokens(plan.context)}: {' and '.join(parts)} will be"
        " in host memory, which is slower.",
        "`paddock plan` says what helps: a smaller kv_cache, a shorter context, a smaller variant.",
        "warning",
        {"gpu_layers": plan.gpu_layers, "layers": most, "cpu_experts": plan.cpu_experts},
    )


def slots_reduced(asked: int, slots: int) -> Reason:
    """Fewer slots than asked, so that everything stays on GPUs."""
    return Reason(
        "slots_reduced",
        f"{counted(slots, 'slot')} instead of {asked}, as far as memory goes: further requests wait.",
        "A smaller kv_cache or a shorter context leaves room for more.",
        "warning",
        {"asked": asked, "granted": slots},
    )


def does_not_fit(
    plan: FitPlan,
    ways: Sequence[Remedy],
    devices: Sequence[Device] = (),
    residents: Sequence[Resident] = (),
    *,
    severity: Severity = "error",
) -> Reason:
    """What it needs, what there is, who has the rest, and what would help (FM-15)."""
    needed = {name: plan.needed_bytes(name) for name in plan.budget_bytes}
    full = {name: need for name, need in needed.items() if need > plan.budget_bytes[name]}
    known = {device.name: device for device in devices}
    parts = [
        f"{size(need)} of {name}, where {size(plan.budget_bytes[name])} can be used"
        f"{_held(name, need, known, residents)}"
        for name, need in full.items()
    ]
    if not full:
        parts = [_together(plan)]
    ending = "the start may fail" if severity == "warning" else "it is not started"
    help_ = ways[0].sentence if ways else "Free memory, or use a smaller model."
    if severity == "error":
        help_ += ' placement.mode = "manual" starts it all the same.'
    return Reason(
        "does_not_fit",
        f"With a context of {tokens(plan.context)} it needs {' and '.join(parts)}; {ending}.",
        help_,
        severity,
        {
            "needed_bytes": full or needed,
            "budget_bytes": {name: plan.budget_bytes[name] for name in full or needed},
            **_holders(full or needed, residents),
            **_foreign(full or needed, known, residents),
        },
    )


def file_does_not_fit(
    file_bytes: int, hardware: Hardware, devices: Sequence[Device], residents: Sequence[Resident]
) -> Reason:
    """A model of which only the size is known, where all of it has to be on GPUs."""
    sizes = budgets(hardware)
    names = [gpu.name for gpu in hardware.gpus]
    known = {device.name: device for device in devices}
    rooms = [f"{size(sizes[name])} of {name}{_held(name, file_bytes, known, residents)}" for name in names]
    return Reason(
        "does_not_fit",
        f"Its files are {size(file_bytes)}, and {' and '.join(rooms)} can be used; it is not started.",
        'Free memory, or use a smaller model. placement.mode = "manual" starts it all the same.',
        "error",
        {
            "needed_bytes": {"files": file_bytes},
            "budget_bytes": {name: sizes[name] for name in names},
            **_holders(names, residents),
        },
    )


def _held(name: str, need: int, known: Mapping[str, Device], residents: Sequence[Resident]) -> str:
    """Who has the rest of a device, as the end of a sentence."""
    device = known.get(name)
    ours = [
        f"{one.model or UNNAMED} holds {size(one.bytes[name])}" for one in residents if one.bytes.get(name)
    ]
    if device is not None and device.is_exclusive and not ours:
        beside = [other.name for other in known.values() if other.endpoint == device.endpoint]
        ours = [
            f"{one.model or UNNAMED} has its server"
            for one in residents
            if any(one.bytes.get(other) for other in beside)
        ]
    # Where a budget or the share that stays free is in the way, other programs are not.
    is_short = device is not None and need > SHORT_SHARE * device.free_bytes
    foreign = _foreign_bytes(device, residents) if device is not None and is_short else 0
    others = [f"other programs hold {size(foreign)}"] if foreign >= LEAST_FOREIGN_BYTES else []
    return f" ({', '.join((*ours, *others))})" if ours or others else ""


def _together(plan: FitPlan) -> str:
    """What does not fit although each device has enough for what has to be there from the start."""
    mapped = sum(line.bytes for line in plan.lines if line.mapped)
    if set(plan.total_bytes) <= {HOST} and mapped:
        return (
            f"{size(plan.needed_bytes(HOST))} of {HOST} and {size(mapped)} for pages of its file, more than"
            " is left of its pool's budget or of all memory"
        )
    return f"{size(sum(plan.total_bytes.values()))} of memory that {' and '.join(plan.total_bytes)} share"


def _foreign_bytes(device: Device, residents: Sequence[Resident]) -> int:
    ours = sum(one.bytes.get(device.name, 0) for one in residents if one.holding != "promised")
    return max(0, device.total_bytes - device.free_bytes - ours)


def _holders(names: Iterable[str], residents: Sequence[Resident]) -> dict[str, Any]:
    held = {
        name: {one.instance: one.bytes[name] for one in residents if one.bytes.get(name)} for name in names
    }
    found = {name: by for name, by in held.items() if by}
    return {"held_bytes": found} if found else {}


def _foreign(
    names: Iterable[str], known: Mapping[str, Device], residents: Sequence[Resident]
) -> dict[str, Any]:
    found = {name: _foreign_bytes(known[name], residents) for name in names if name in known}
    return {"foreign_bytes": found} if found else {}


def context_above_training(asked: int, trained: int) -> Reason:
    """An asked context that is longer than the trained one."""
    return Reason(
        "context_above_training",
        f"The context of {tokens(asked)} is above the {tokens(trained)} that the model was trained for; the"
        " engine caps each slot there.",
        "Ask for a shorter context, or extend it with rope flags in engine_args.",
        "warning",
        {"asked_tokens": asked, "trained_tokens": trained},
    )


def slot_context_small(context: int, slots: int) -> Reason | None:
    """Slots that are left with next to nothing when all are in use."""
    each = context // max(1, slots)
    if each >= LEAST_SLOT_TOKENS:
        return None
    enough = tokens(LEAST_SLOT_TOKENS * max(1, slots))
    fewer = ", or use fewer slots" if slots > 1 else ""
    return Reason(
        "slot_context_small",
        f"A context of {tokens(context)} leaves {tokens(each)} to each of {counted(slots, 'slot')} when all"
        " are in use: questions will be refused or answers cut off.",
        f"Ask for a context of at least {enough}{fewer}.",
        "warning",
        {"context_tokens": context, "slots": slots, "slot_tokens": each},
    )


def memory_may_grow(plan: FitPlan) -> Reason | None:
    """What fits from the start, and may not once everything is filled that fills while the server runs."""
    budget = plan.budget_bytes.get(HOST)
    growing = {line.label: line.bytes for line in plan.lines if line.device == HOST and line.grows}
    together = plan.needed_bytes(HOST) + sum(growing.values())
    if not plan.fits or budget is None or together <= budget:
        return None
    names = " and ".join(label.replace("_", " ") for label in growing)
    room = budget - plan.needed_bytes(HOST) - growing.get("checkpoints", 0)
    return Reason(
        "memory_may_grow",
        f"It fits from the start, but with {names} filled it takes {size(together)} of {HOST}, where"
        f" {size(budget)} can be used.",
        _less_growth(room),
        evidence={"together_bytes": together, "budget_bytes": budget, "growing_bytes": growing},
    )


def _less_growth(room: int) -> str:
    """How to keep what grows within `room` bytes, which is what checkpoints leave of the budget."""
    mib = room // MIB // LEAST_PROMPT_CACHE_MIB * LEAST_PROMPT_CACHE_MIB
    if room < 0:
        flags, what = '"--cache-ram", "0", "--ctx-checkpoints", "1"', "no prompt cache, and fewer checkpoints"
    elif mib <= 0:
        flags, what = '"--cache-ram", "0"', "no prompt cache"
    else:
        flags, what = f'"--cache-ram", "{mib}"', f"a prompt cache of {size(mib * MIB)} at most"
    return f"engine_args = [{flags}] means {what}; every model has a prompt cache of its own."


def model_exceeds_memory(plan: FitPlan, hardware: Hardware) -> Reason | None:
    """Pages of a file can be dropped and read again, so such a plan fits; it is only very slow."""
    needed = sum(line.bytes for line in plan.lines if line.device == HOST and not line.grows)
    total = hardware.host_total_bytes
    if not total or needed <= total or not plan.fits:
        return None
    return Reason(
        "model_exceeds_memory",
        f"Weights and caches in host memory are {size(needed)}, all host memory is {size(total)}: parts of"
        " the file will be read again for every token.",
        "Choose a smaller variant of the model, or a machine with more memory.",
        "warning",
        {"needed_bytes": needed, "memory_bytes": total},
    )
