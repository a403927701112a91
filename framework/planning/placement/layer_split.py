"""How many layers each device gets, by what layers weigh and not by how many there are (GP-08). Pure.

Layers go to devices in runs, in order, the output last. Layers differ: only some have caches, experts or
states, so an equal count can overfill one card while another is half empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.planning.memory.drafter import rollback
from framework.planning.memory.fit import Extras
from framework.planning.memory.kv_cache import kv_bytes_by_layer
from framework.planning.memory.placement import Placement
from framework.planning.memory.recurrent_state import state_bytes_by_layer
from framework.planning.memory.settings import CacheSettings
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory.weights import weights_by_device

# Halvings of the range of shares: layers are far coarser than what is left after so many.
HALVINGS = 16
OUTPUT = "output"


def layer_bytes(
    shape: ModelShape, tensors: TensorTable, settings: CacheSettings, extras: Extras, cpu_experts: int
) -> tuple[int, ...]:
    """Weights, cache and states that go where their layer goes; those of the output come last."""
    names = tuple(map(str, range(shape.layers)))
    weights = weights_by_device(shape, tensors, Placement(names, OUTPUT, cpu_experts))
    sizes = [
        weights[name].plain + weights[name].repacked if name in weights else 0 for name in (*names, OUTPUT)
    ]
    if settings.kv_on_gpu:
        states = state_bytes_by_layer(shape, settings.slots, rollback(extras.draft, shape.architecture))
        for by_layer in (kv_bytes_by_layer(shape, settings), states):
            for layer, size in by_layer.items():
                sizes[min(layer, shape.layers)] += size
    return tuple(sizes)


def split_layers(costs: Sequence[int], rooms: Sequence[int]) -> tuple[int, ...] | None:
    """Layers of each device, so that the fullest one is as empty as can be; None where they do not fit.

    `costs` are bytes of layers in order, `rooms` what each device has for layers. A device without room for
    any gets 0.
    """
    if _filled(costs, rooms, 1.0) is None:
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _filled(costs, rooms, middle) else (middle, high)
    return _filled(costs, rooms, high)


def proportional(costs: Sequence[int], rooms: Sequence[int]) -> tuple[int, ...]:
    """Layers of each device by its share of all room, to show how far what does not fit is from fitting."""
    whole, bytes_ = max(1, sum(rooms)), sum(costs)
    counts, taken, ends = [0] * len(rooms), 0, 0
    place = 0
    for cost in costs:
        while place + 1 < len(rooms) and taken >= bytes_ * (ends + rooms[place]) / whole:
            ends += rooms[place]
            place += 1
        counts[place] += 1
        taken += cost
    return tuple(counts)


def _filled(costs: Sequence[int], rooms: Sequence[int], share: float) -> tuple[int, ...] | None:
    """Devices filled one after the other, each up to a share of its room; None where layers are left over."""
    counts = [0] * len(rooms)
    place, left = 0, rooms[0] * share if rooms else 0.0
    for cost in costs:
        while cost > left:
            place += 1
            if place >= len(rooms):
                return None
            left = rooms[place] * share
        counts[place] += 1
        left -= cost
    return tuple(counts)
