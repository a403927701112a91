"""Tensors divided over all cards, where the model, the cards and the engine allow it (04 §10.2-10.5). Pure.

Called by planning.launch_place before layers are placed. What does not allow it is a reason, and layers are
split as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from framework.engines.args import K_TYPE_FLAGS, V_TYPE_FLAGS, cache_type
from framework.engines.granted import UNQUANTISED
from framework.planning.launch_memory import ModelMemory, extras_of
from framework.planning.line_settings import LineSettings
from framework.planning.memory.budget import budgets, with_lines
from framework.planning.memory.fit import plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware
from framework.planning.placement.choice import Choice
from framework.planning.placement.search import Asked
from framework.planning.placement.tensor_split import (
    FEWEST_CARDS,
    SHORTEST,
    TensorCosts,
    TensorPlan,
    plan_tensor_split,
)
from framework.values.plan import FitPlan, LaunchPlan, MemoryLine
from framework.values.pool import Freedom
from framework.values.reason import Reason

# What is divided; everything else is on every card, or on the first one.
DIVIDED = frozenset({"weights", "kv", "recurrent_state"})
DEFAULT_TYPE = "f16"


@dataclass(frozen=True)
class TensorMode:
    """What came of the wish. `line` has the cache types that will be used."""

    line: LineSettings
    tensor: Choice | None = None
    asked_context: int = 0
    cache_types: tuple[str | None, str | None] | None = None
    """As they go on the line where that is not what was granted before."""
    reasons: tuple[Reason, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether tensors are divided."""
        return self.tensor is not None

    def choice(self, freedom: Freedom) -> Choice | None:
        """The place on all cards, where that is within a freedom: its context may be shorter than asked."""
        if self.tensor is None or (freedom == "whole" and self.tensor.context < self.asked_context):
            return None
        return self.tensor


def tensor_mode(
    plan: LaunchPlan,
    line: LineSettings,
    model: ModelMemory,
    hardware: Hardware,
    asked: Asked,
    *,
    withheld: Reason | None = None,
) -> TensorMode:
    """Try to divide tensors, where the request wants it and it is not `withheld` (04 §12)."""
    if not plan.request.tensor_parallel:
        return TensorMode(line)
    if withheld is not None:
        return TensorMode(line, reasons=(withheld,))
    if fault := _gate(plan, len(hardware.gpus)):
        return TensorMode(line, reasons=(_dropped(fault),))
    plain, types, notes = _without_quantised_cache(plan, line)
    one = _OneCard(plain, model, hardware, asked.slots)
    found = plan_tensor_split(
        one.costs(),
        hardware.gpus,
        asked.context,
        fill=hardware.fill_fraction,
        usable=[budgets(hardware)[gpu.name] for gpu in hardware.gpus],
    )
    choice = one.choice(found, model.shape.layers + 1) if found.fits else None
    if choice is None or choice.fit.fits is False:
        few = len(found.cards) < FEWEST_CARDS
        why = "fewer than two GPUs have room for its buffers" if few else "it does not fit that way"
        return TensorMode(line, reasons=(_dropped(why),))
    return TensorMode(plain, choice, asked.context, types, notes)


def tensor_by_hand(
    plan: LaunchPlan, line: LineSettings, gpus: int, *, withheld: Reason | None = None
) -> tuple[bool, tuple[str | None, str | None] | None, tuple[Reason, ...]]:
    """Whether manual mode divides tensors, with which cache types, and why not (04 §10.2, §11.2)."""
    request = plan.request
    if not request.tensor_parallel:
        return False, None, ()
    if withheld is not None:
        return False, None, (withheld,)
    fault = _gate(plan, gpus)
    if request.gpu_layers <= 0:
        fault = "manual mode does that only with a number of layers on GPUs"
    if fault is not None:
        return False, None, (_dropped(fault),)
    _, types, notes = _without_quantised_cache(plan, line)
    return True, types, notes


def _gate(plan: LaunchPlan, gpus: int) -> str | None:
    if plan.caps.conclusive and not plan.caps.has("--split-mode"):
        return "this engine has no --split-mode"
    if gpus < FEWEST_CARDS:
        return "that takes two GPUs at least"
    own = (cache_type(plan.request.extra_args, flags) for flags in (K_TYPE_FLAGS, V_TYPE_FLAGS))
    if any(named is not None and named not in UNQUANTISED for named in own):
        return "engine_args ask for a quantised cache, which cannot be divided"
    return None


def _without_quantised_cache(
    plan: LaunchPlan, line: LineSettings
) -> tuple[LineSettings, tuple[str | None, str | None] | None, tuple[Reason, ...]]:
    """Caches of plain numbers: the engine cannot divide others (04 §10.3)."""
    asked = (line.cache.key_type, line.cache.value_type)
    if all(name in UNQUANTISED for name in asked):
        return line, None, ()
    reason = Reason(
        "kv_type_dropped",
        f"The cache is {DEFAULT_TYPE} instead of {asked[0]} and {asked[1]}: a quantised one cannot be divided"
        " over GPUs by tensors.",
        'Set placement.split = "layer" to keep the type.',
        "warning",
        {"asked": list(asked), "granted": DEFAULT_TYPE},
    )
    plain = replace(line.cache, key_type=DEFAULT_TYPE, value_type=DEFAULT_TYPE)
    return replace(line, cache=plain), (None, None), (reason,)


def _dropped(gate: str) -> Reason:
    return Reason(
        "tensor_dropped",
        f"Layers are divided over the GPUs, not tensors: {gate}.",
        'Free memory, use a shorter context, or set placement.split = "layer".',
        "warning",
        {"gate": gate},
    )


@dataclass(frozen=True)
class _OneCard:
    """What everything would take on one card, to be divided."""

    line: LineSettings
    model: ModelMemory
    hardware: Hardware
    slots: int

    def plan(self, context: int) -> FitPlan:
        card = replace(self.hardware, gpus=self.hardware.gpus[:1])
        settings = replace(self.line.cache, n_ctx=context, slots=self.slots)
        model = self.model
        extras = extras_of(self.line, model)
        return plan_memory(model.shape, model.tensors, settings, card, extras=extras)

    def costs(self) -> TensorCosts:
        plans: Callable[[int], FitPlan] = cache(self.plan)
        base = plans(SHORTEST)
        buffer = self._bytes(base, "compute")
        soft = ("runtime", "projector", "adapter", "drafter_weights", "drafter_kv", "drafter_compute")
        known = self.model.shape.estimable or bool(self.model.shape.recurrent_layers)
        return TensorCosts(
            weights_bytes=self._bytes(base, "weights"),
            cache=(lambda context: self._bytes(plans(context), "kv", "recurrent_state")) if known else None,
            growth=lambda context: max(0, self._bytes(plans(context), "compute") - buffer),
            reserve_bytes=buffer,
            soft_bytes=self._bytes(base, *soft),
        )

    def choice(self, found: TensorPlan, layers: int) -> Choice:
        cards = [self.hardware.gpus[place] for place in found.cards]
        used = replace(self.hardware, gpus=tuple(cards))
        parts = found.weights or (1,) * len(cards)
        single = self.plan(found.context)
        lines = _divided(single, [card.name for card in cards], parts)
        return Choice(
            fit=with_lines(single, lines, used),
            devices=tuple(card.name for card in cards),
            context=found.context,
            slots=self.slots,
            gpu_layers=layers,
            all_layers=layers,
            split="tensor",
            shares=found.weights or (),
        )

    def _bytes(self, fit: FitPlan, *labels: str) -> int:
        return sum(line.bytes for line in fit.lines if line.device != HOST and line.label in labels)


def _divided(single: FitPlan, names: list[str], parts: tuple[int, ...]) -> list[MemoryLine]:
    """The lines of one card on all of them; nobody has measured that, so they are assumed."""
    whole = sum(parts)
    lines = []
    for number, (name, part) in enumerate(zip(names, parts, strict=True)):
        for line in single.lines:
            if line.device == HOST:
                continue
            size = -(-line.bytes * part // whole) if line.label in DIVIDED else line.bytes
            if line.label in DIVIDED or line.label == "compute" or number == 0:
                lines.append(replace(line, device=name, bytes=size, basis="assumed"))
    return [*lines, *(line for line in single.lines if line.device == HOST)]
