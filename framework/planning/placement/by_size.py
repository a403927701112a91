"""Room for a launch of which only the size of its files is known (04 §10.9). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framework.planning.memory.budget import budgets
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware
from framework.planning.placement.selection import CARD_OVERHEAD_BYTES, select_cards


@dataclass(frozen=True)
class BySize:
    """Bytes by device, and whether GPUs have room for all of it."""

    needs_bytes: Mapping[str, int]
    mapped_bytes: Mapping[str, int]
    fits: bool


def place_by_size(size_bytes: int, hardware: Hardware) -> BySize:
    """Spread over the fewest cards that hold it, each in proportion to its room.

    Where all of them do not, over all that there are; the rest stays in pages of the file.
    """
    usable = budgets(hardware)
    rooms = [usable[gpu.name] for gpu in hardware.gpus]
    chosen = select_cards(size_bytes, hardware.gpus, overhead_bytes=CARD_OVERHEAD_BYTES, usable=rooms)
    places = range(len(rooms)) if chosen is None else chosen
    whole = sum(rooms[place] for place in places)
    taken = min(size_bytes, whole)
    needs = {
        hardware.gpus[place].name: taken * rooms[place] // whole for place in places if whole and rooms[place]
    }
    left = size_bytes - taken
    return BySize(needs, {HOST: left} if left else {}, fits=chosen is not None)
