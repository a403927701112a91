"""A plan for every tensor divided over all cards, instead of layers (03 §12). Pure.

The engine's own fit step does nothing then, so this bounds every request, an explicit context included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from framework.planning.memory.budget import usable_bytes
from framework.planning.memory.context_fit import bisect
from framework.planning.memory.settings import GpuBudget

MIB = 1 << 20
SHORTEST = 2048
FEWEST_CARDS = 2
SHORTEST_UNKNOWN = 4096
FALLBACK_RESERVE_MIB = 5120
# Drafts whose cache cannot be sized.
DRAFT_CUSHION_BYTES = 2048 * MIB
FILL = 0.97

Cost = Callable[[int], int]
"""Bytes by tokens of context."""


@dataclass(frozen=True)
class TensorCosts:
    """What a model takes. `cache` is None where it cannot be estimated; `growth` is what every card pays."""

    weights_bytes: int
    cache: Cost | None
    growth: Cost
    reserve_bytes: int = 0
    """Compute buffer of each card; 0 is not known."""
    soft_bytes: int = 0
    cushion_bytes: int = 0
    draft_unsized: bool = False


@dataclass(frozen=True)
class TensorPlan:
    """`cards` are places in the list; `weights` are shares in MiB, None for equal ones."""

    context: int
    ceiling: int
    cards: tuple[int, ...]
    weights: tuple[int, ...] | None
    fits: bool
    budget_bytes: int = 0


def plan_tensor_split(
    costs: TensorCosts,
    cards: Sequence[GpuBudget],
    target: int,
    *,
    ceiling_target: int = 0,
    fill: float = FILL,
    usable: Sequence[int] | None = None,
) -> TensorPlan:
    """The longest context up to `target` on all cards that have room for their buffer; fewer than two of them
    are no plan, and `fits` is false."""
    reserve_mib = costs.reserve_bytes // MIB or FALLBACK_RESERVE_MIB
    rooms = list(usable) if usable is not None else _rooms(cards, fill)
    kept = tuple(place for place, room in enumerate(rooms) if room / MIB >= reserve_mib)
    if len(kept) < FEWEST_CARDS:
        context = target if target > 0 else SHORTEST_UNKNOWN
        return TensorPlan(context, context, kept, None, fits=False)
    count = len(kept)
    flat = max(0, costs.cushion_bytes)
    if costs.draft_unsized:
        flat = max(flat, DRAFT_CUSHION_BYTES)
    room_bytes = sum(rooms[place] for place in kept) - count * reserve_mib * MIB
    budget = room_bytes - costs.weights_bytes - flat - max(0, costs.soft_bytes)
    consumer = _consumer(costs, count)
    ceiling = _longest(ceiling_target if ceiling_target > 0 else target, budget, consumer)
    context = min(_longest(target, budget, consumer), ceiling)
    fits = budget > 0 if consumer is None else consumer(context) <= budget
    growth = costs.growth(context)
    cache = costs.cache(context) if costs.cache else 0
    share_mib = (costs.weights_bytes + cache + flat + count * growth) / count / MIB
    usable_mib = [rooms[place] / MIB for place in kept]
    weights = None
    if share_mib > min(usable_mib) - reserve_mib:
        weights = tuple(max(0, int(room - reserve_mib - growth // MIB)) for room in usable_mib)
    return TensorPlan(context, ceiling, kept, weights if weights and sum(weights) else None, fits, budget)


def _rooms(cards: Sequence[GpuBudget], fill: float) -> list[int]:
    return [usable_bytes(card.free_bytes, card.total_bytes, fill) for card in cards]


def _consumer(costs: TensorCosts, count: int) -> Cost | None:
    cache, growth = costs.cache, costs.growth
    if cache is None:
        return None
    return lambda context: cache(context) + count * growth(context)


def _longest(target: int, budget: int, consumer: Cost | None) -> int:
    if consumer is None or target <= 0:
        return min(SHORTEST_UNKNOWN, target) if target > 0 else SHORTEST_UNKNOWN
    floor = min(SHORTEST, target)
    if budget <= 0:
        return floor
    return bisect(floor, target, lambda context: consumer(context) <= budget)
