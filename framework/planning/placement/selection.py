"""Which cards a launch may need at least (04 §9). Pure. Called by the search for a place, which then counts
layer by layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.planning.memory.budget import usable_bytes
from framework.planning.memory.settings import GpuBudget

FILL = 0.97
# What every card after the first takes besides, where no more is known (03 §1.3, §9.5).
CARD_OVERHEAD_BYTES = 1 << 30


def ranked(cards: Sequence[GpuBudget], usable: Sequence[int]) -> list[int]:
    """Places of cards in their list, the one with the most usable memory first; of equal ones the first."""
    return sorted(range(len(cards)), key=lambda place: (-usable[place], place))


def select_cards(
    footprint_bytes: int,
    cards: Sequence[GpuBudget],
    *,
    fill: float = FILL,
    overhead_bytes: int = 0,
    minimum: int = 1,
    usable: Sequence[int] | None = None,
) -> tuple[int, ...] | None:
    """Places of the fewest cards that have room for a footprint, in their order; None: not even all have.

    Every card after the first costs `overhead_bytes`; a nearly full one is not taken only to reach `minimum`.
    `usable` are the bytes that each card gives, where they are known to differ from its share (03 §9.4).
    """
    if not cards:
        return None
    rooms = usable or [usable_bytes(card.free_bytes, card.total_bytes, fill) for card in cards]
    order = ranked(cards, rooms)
    admitted = sum(room > overhead_bytes for room in rooms)
    least = max(1, min(minimum, len(cards), admitted or 1))
    if least <= 1 and rooms[order[0]] >= footprint_bytes:
        return (order[0],)
    for count in range(max(least, 2), len(cards) + 1):
        chosen = order[:count]
        if sum(rooms[place] for place in chosen) >= footprint_bytes + (count - 1) * overhead_bytes:
            return tuple(sorted(chosen))
    return None
