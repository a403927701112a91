"""Devices whose memory is the host's (04 §4.5, FM-24)."""

from __future__ import annotations

import pytest

from framework.hardware.unified import after_return, fit_view, in_host_memory, is_unified
from framework.values.device import Device

MIB = 2**20


def device(name: str, about: str, free_mib: int = 8_000, *, unified: bool = True) -> Device:
    return Device(name, "gpu", 16_000 * MIB, free_mib * MIB, about, is_unified=unified)


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)"),
        ("Vulkan0", "Intel(R) UHD Graphics 770 (ADL-S GT1)"),
        ("Vulkan0", "Intel(R) Arc(tm) Graphics (MTL)"),
        ("Vulkan0", "AMD Radeon 780M Graphics (RADV PHOENIX)"),
        ("Vulkan1", "AMD Radeon Graphics (RADV GFX1151)"),
        ("MTL0", "Apple M3 Max"),
    ],
)
def test_chips_that_share_the_hosts_memory(name: str, about: str) -> None:
    assert is_unified(device(name, about))


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("Vulkan0", "NVIDIA GeForce RTX 3090"),
        ("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)"),
        ("Vulkan0", "Intel(R) Arc(tm) A770 Graphics (DG2)"),
        ("CUDA0", "llvmpipe"),
    ],
)
def test_cards_with_memory_of_their_own(name: str, about: str) -> None:
    assert not is_unified(device(name, about))


@pytest.mark.parametrize(("free_mib", "expected_mib"), [(8_000, 6_976), (500, 0)])
def test_some_of_an_integrated_chip_stays_with_the_host(free_mib: int, expected_mib: int) -> None:
    seen = fit_view(device("Vulkan0", "Intel(R) Iris(R) Xe Graphics", free_mib), 64_000 * MIB)
    assert (seen.free_bytes, seen.total_bytes) == (expected_mib * MIB, 0)


def test_a_card_is_seen_as_it_is() -> None:
    card = device("Vulkan0", "NVIDIA GeForce RTX 3090", 31_700, unified=False)
    assert fit_view(card, 14_800 * MIB) == card


def test_unified_memory_is_limited_by_what_the_host_has_free() -> None:
    seen = fit_view(device("CUDA0", "NVIDIA GB10", 31_700), 14_800 * MIB)
    assert seen.free_bytes == 14_800 * MIB


def test_a_renderer_in_software_keeps_its_own_limit() -> None:
    seen = fit_view(device("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", 2_048), 64_000 * MIB)
    assert (seen.free_bytes, seen.total_bytes) == (2_048 * MIB, 16_000 * MIB)


HOST = Device("CPU", "cpu", 16_000 * MIB, 6_000 * MIB)
CARD = Device("CUDA0", "gpu", 24_000 * MIB, 4_000 * MIB)


def test_devices_in_host_memory_are_one_memory_with_it() -> None:
    assert in_host_memory([device("MTL0", "Apple M3"), CARD, HOST]) == {"CPU", "MTL0"}


def test_a_chip_with_more_memory_than_the_host_has_its_own() -> None:
    carved_out = Device("ROCm0", "gpu", 96_000 * MIB, 90_000 * MIB, is_unified=True)
    assert in_host_memory([carved_out, HOST]) == {"CPU"}


@pytest.mark.parametrize("freed", ["CPU", "MTL0"])
def test_what_is_given_back_of_shared_memory_is_given_to_all_who_share_it(freed: str) -> None:
    devices = [device("MTL0", "Apple M3", 5_000), CARD, HOST]
    found = after_return(devices, {freed: 1_000 * MIB})
    assert [one.free_bytes // MIB for one in found] == [6_000, 4_000, 7_000]


def test_no_more_is_given_back_than_there_is() -> None:
    assert after_return([CARD], {"CUDA0": 90_000 * MIB})[0].free_bytes == CARD.total_bytes


def test_a_device_of_unknown_size_gets_all_of_it_back() -> None:
    unknown = Device("SYCL0", "gpu", 0, 3)
    assert after_return([unknown], {"SYCL0": 5})[0].free_bytes == 8
