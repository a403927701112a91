"""Layers are divided by what they weigh (GP-08)."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from framework.planning.memory.fit import Extras, plan_memory
from framework.planning.memory.placement import place
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware, Offload
from framework.planning.placement.layer_split import layer_bytes, proportional, split_layers
from tests.support.memory_rows import measured_models

GIB = 1 << 30
# 80 layers and the output; the first 40 hold 60 % of 32 GiB, and only some have caches.
UNEQUAL = (*[int(0.48 * GIB)] * 40, *[int(0.32 * GIB)] * 40, GIB // 4)

COSTS = st.lists(st.integers(0, 50), min_size=1, max_size=40)
ROOMS = st.lists(st.integers(0, 400), min_size=1, max_size=6)


def loads(costs: tuple[int, ...], counts: tuple[int, ...]) -> list[int]:
    bounds = [0, *accumulate(counts)]
    return [sum(costs[first:last]) for first, last in pairwise(bounds)]


def test_both_cards_stay_within_their_budgets_where_an_equal_count_would_not() -> None:
    rooms = [int(16.5 * GIB)] * 2
    counts = split_layers(UNEQUAL, rooms)
    assert counts is not None
    assert all(load <= room for load, room in zip(loads(UNEQUAL, counts), rooms, strict=True))
    assert max(loads(UNEQUAL, (40, 41))) > rooms[0]


def test_the_fullest_device_is_as_empty_as_can_be() -> None:
    assert split_layers((1,) * 30, (20, 40)) == (10, 20)


def test_a_device_without_room_gets_no_layer() -> None:
    assert split_layers((5, 5, 5), (3, 20)) == (0, 3)


def test_what_does_not_fit_is_none() -> None:
    assert split_layers((5, 5, 5), (9, 5)) is None
    assert split_layers((5,), ()) is None


def test_how_far_it_is_from_fitting_is_shown_in_proportion() -> None:
    assert proportional((1,) * 9, (1, 2)) == (3, 6)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.lists(st.integers(0, 400), min_size=1, max_size=6),
)
def test_a_split_has_every_layer_and_overfills_nothing(costs: list[int], rooms: list[int]) -> None:
    counts = split_layers(costs, rooms)
    if counts is None:
        return
    assert sum(counts) == len(costs)
    assert all(load <= room for load, room in zip(loads(tuple(costs), counts), rooms, strict=True))


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.lists(st.integers(0, 400), min_size=1, max_size=6),
)
def test_a_rough_split_has_every_layer_too(costs: list[int], rooms: list[int]) -> None:
    counts = proportional(costs, rooms)
    assert (len(counts), sum(counts)) == (len(rooms), len(costs))


@given(st.lists(st.integers(0, 12), min_size=2, max_size=8).filter(any))
def test_shares_of_whole_layers_put_exactly_so_many_on_each_device(counts: list[int]) -> None:
    gpus = [GpuBudget(f"G{place}", GIB) for place in range(len(counts))]
    placed = place(sum(counts) - 1, Offload(None, 0, tuple(map(float, counts))), gpus)
    names = [*placed.layers, placed.output]
    assert [names.count(gpu.name) for gpu in gpus] == counts


def test_layers_and_output_are_all_that_goes_to_a_device_besides_what_it_computes() -> None:
    model = measured_models()["llama-3.1-8b"]
    settings = CacheSettings(8192, slots=4)
    costs = layer_bytes(model.shape, model.table, settings, Extras(), 0)
    card = Hardware((GpuBudget("RPC0", 24 * GIB, 24 * GIB, "rpc"),))
    fit = plan_memory(model.shape, model.table, settings, card)
    lines = sum(line.bytes for line in fit.lines if line.device == "RPC0" and line.label in ("weights", "kv"))
    assert sum(costs) == lines
