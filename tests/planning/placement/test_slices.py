"""Slices of a card: one for a process (GP-06)."""

from __future__ import annotations

import pytest

from framework.planning.placement.slices import go_together, usable_together
from framework.values.device import Device

ONE, OTHER = (Device(f"MIG-{n}", "gpu", 24, 24, uuid=f"MIG-{n}") for n in "ab")
CARD, SECOND = (Device(f"CUDA{n}", "gpu", 80, 80) for n in range(2))
VULKAN = Device("Vulkan0", "gpu", 8, 8)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((), True),
        ((ONE,), True),
        ((CARD, SECOND, VULKAN), True),
        ((ONE, VULKAN), True),
        ((ONE, OTHER), False),
        ((ONE, CARD), False),
    ],
    ids=lambda value: "-".join(one.name for one in value) if isinstance(value, tuple) else None,
)
def test_a_process_uses_one_slice_and_no_card_beside_it(gpus: tuple[Device, ...], *, expected: bool) -> None:
    assert go_together(gpus) is expected


@pytest.mark.parametrize(
    ("usable", "expected"),
    [
        pytest.param({"MIG-a": 5, "MIG-b": 9}, ["MIG-b", "Vulkan0"], id="the-roomiest"),
        pytest.param({"MIG-a": 5, "MIG-b": 5}, ["MIG-a", "Vulkan0"], id="the-first-of-equal-ones"),
        pytest.param({"MIG-a": 5, "CUDA0": 3, "CUDA1": 3}, ["CUDA0", "CUDA1", "Vulkan0"], id="whole-cards"),
    ],
)
def test_those_with_the_most_room_are_used(usable: dict[str, int], expected: list[str]) -> None:
    gpus = (ONE, OTHER, CARD, SECOND, VULKAN)
    assert [gpu.name for gpu in usable_together(gpus, usable)] == expected
