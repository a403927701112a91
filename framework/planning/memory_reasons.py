"""Why the memory plan of a launch differs from what was asked, in words (04 §17). Pure; for launch_memory."""

from __future__ import annotations

from collections.abc import Sequence

from framework.planning.memory import Hardware
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import CELL_PADDING
from framework.values.plan import FitPlan, Remedy
from framework.values.reason import Reason
from framework.values.units_text import counted, size, tokens

MIB = 1 << 20
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


def does_not_fit(plan: FitPlan, ways: Sequence[Remedy]) -> Reason:
    """The start is tried all the same: the engine may know better."""
    needed = {name: plan.needed_bytes(name) for name in plan.budget_bytes}
    full = {name: need for name, need in needed.items() if need > plan.budget_bytes[name]}
    parts = [
        f"{size(need)} of {name}, where {size(plan.budget_bytes[name])} can be used"
        for name, need in full.items()
    ]
    return Reason(
        "does_not_fit",
        f"With a context of {tokens(plan.context)} it needs {' and '.join(parts)}; the start may fail.",
        ways[0].sentence if ways else "Free memory, or use a smaller model.",
        "warning",
        {"needed_bytes": full, "budget_bytes": {name: plan.budget_bytes[name] for name in full}},
    )


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
