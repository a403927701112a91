"""The longest context whose costs stay within a budget (03 §10). Pure; costs come in as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from framework.planning.memory.settings import CELL_PADDING

SHORTEST = 4096
"""Below this no context is tried (03 §1.3)."""


@dataclass(frozen=True)
class ContextFit:
    """`fits` None: nothing could be estimated. A context that does not fit must never be pinned."""

    context: int
    """Tokens of all slots together."""
    fits: bool | None
    used_bytes: int = 0
    budget_bytes: int = 0


def longest_context(
    requested: int,
    budget_bytes: int,
    fixed_bytes: int,
    cost: Callable[[int], int] | None,
    *,
    shortest: int = SHORTEST,
    kv_on_gpu: bool = True,
) -> ContextFit:
    """`cost` is what grows with the context: caches, drafts, masks; None where it cannot be estimated."""
    if cost is None:
        return ContextFit(requested, None, fixed_bytes, budget_bytes)

    def result(context: int) -> ContextFit:
        used = fixed_bytes + cost(context)
        return ContextFit(context, used <= budget_bytes, used, budget_bytes)

    whole = result(requested)
    if not kv_on_gpu or whole.fits or fixed_bytes >= budget_bytes:
        return whole
    low = min(shortest, requested)
    room = budget_bytes - fixed_bytes
    context = bisect(low, requested, lambda tokens: cost(tokens) <= room)
    rounded = context // CELL_PADDING * CELL_PADDING
    return result(min(max(rounded, low), requested))


def bisect(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest number in [low, high] that fits, `low` if none does. What fits is below what does not."""
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
