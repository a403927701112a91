"""Variables for some hardware (04 §6.1, §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from framework.engines.tuning import is_datacenter_card, is_shared_memory_chip, tuning_variables
from framework.values.device import Device

SINGLE = {"GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F": "1"}
SEVERAL = {**SINGLE, "GGML_CUDA_P2P": "1", "CUDA_SCALE_LAUNCH_QUEUES": "4x"}


def card(name: str, description: str = "", architecture: str = "") -> Device:
    return Device(name, "gpu", 1, 1, description, architecture=architecture)


H100, RTX = card("CUDA0", "NVIDIA H100 80GB HBM3"), card("CUDA1", "NVIDIA GeForce RTX 4090")
APU, RADEON = card("ROCm0", architecture="gfx1151:xnack-"), card("ROCm1", architecture="gfx1100")


@pytest.mark.parametrize(
    "name",
    [
        "a100-sxm4",
        "h100 nvl",
        "NVIDIA L40",
        "NVIDIA L40S",
        "NVIDIA L4",
        "NVIDIA RTX PRO 6000 Blackwell",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA GB300",
    ],
)
def test_cards_for_datacenters(name: str) -> None:
    assert is_datacenter_card(name)


@pytest.mark.parametrize("name", ["RTX A1000", "NVIDIA GB10", "A10", "A6000", "V100", "RTX 4090", ""])
def test_other_cards(name: str) -> None:
    assert not is_datacenter_card(name)


@pytest.mark.parametrize("architecture", ["gfx1150", "gfx1151", "gfx1152:sramecc-"])
def test_chips_that_share_memory(architecture: str) -> None:
    assert is_shared_memory_chip(architecture)


@pytest.mark.parametrize("architecture", ["gfx1100", "gfx115", ""])
def test_chips_with_memory_of_their_own(architecture: str) -> None:
    assert not is_shared_memory_chip(architecture)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param([H100, RTX], {}, id="not all of them"),
        pytest.param([H100], SINGLE, id="one"),
        pytest.param([H100, H100], SEVERAL, id="several"),
        pytest.param([], {}, id="none"),
        pytest.param([APU, RADEON], {"GGML_CUDA_ENABLE_UNIFIED_MEMORY": "1"}, id="shared memory"),
        pytest.param([RADEON], {}, id="discrete"),
        pytest.param([card("Vulkan0", "NVIDIA H100 80GB HBM3")], {}, id="vulkan"),
    ],
)
def test_what_suits_the_devices(devices: Sequence[Device], expected: Mapping[str, str]) -> None:
    assert tuning_variables(devices) == expected


def test_tuning_can_be_switched_off() -> None:
    assert tuning_variables([H100], datacenter_tuning=False) == {}
