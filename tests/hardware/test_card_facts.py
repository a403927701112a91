"""Listed devices joined with what drivers know (GP-01, GP-03, GP-04, GP-06)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from framework.hardware.amd import AmdCard
from framework.hardware.card_facts import with_card_facts
from framework.hardware.device_list import parse_device_list
from framework.hardware.driver import DriverFacts
from framework.hardware.membership import members
from framework.hardware.nvml import CardSlice, NvidiaCard
from framework.values.device import Device
from framework.values.reason import Reason
from framework.values.request import PoolLimits

MIB = 2**20
HOST = Device("CPU", "cpu", 124_600 * MIB, 110_000 * MIB)
SMALL = NvidiaCard(0, "card-small", "GPU-small", "01:00.0", 6_144 * MIB, 6_000 * MIB, 0.5, {7: 9})
BIG = NvidiaCard(1, "card-big", "GPU-big", "41:00.0", 24_576 * MIB, 24_000 * MIB)
BOTH = "CUDA0: card-small (6144 MiB, 6000 MiB free)", "CUDA1: card-big (24576 MiB, 24000 MiB free)"


def join(
    *lines: str,
    nvidia: tuple[NvidiaCard, ...] = (),
    amd: tuple[AmdCard, ...] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[dict[str, Device], tuple[Reason, ...]]:
    """Devices by name, and reasons, of a listing with these lines."""
    listed = parse_device_list("".join(f"  {line}\n" for line in lines))
    devices, reasons = with_card_facts(listed, DriverFacts(nvidia, amd), environ or {}, HOST)
    return {device.name: device for device in devices}, reasons


def test_cards_are_known_by_their_place_on_the_bus() -> None:
    devices, reasons = join(*BOTH, nvidia=(SMALL, BIG))
    assert (devices["CUDA0"].uuid, devices["CUDA1"].uuid) == ("GPU-small", "GPU-big")
    assert (devices["CUDA0"].bus_id, devices["CUDA0"].utilisation) == ("01:00.0", 0.5)
    assert devices["CUDA0"].used_by_pid == {7: 9}
    assert reasons == ()


def test_a_card_that_is_counted_otherwise_is_known_by_name_and_size() -> None:
    """GP-01: the driver lists by bus, the runtime the fastest first."""
    lines = ("CUDA0: card-big (24576 MiB, 24000 MiB free)", "CUDA1: card-small (6144 MiB, 6000 MiB free)")
    devices, _ = join(*lines, nvidia=(SMALL, BIG))
    assert (devices["CUDA0"].uuid, devices["CUDA1"].uuid) == ("GPU-big", "GPU-small")


def test_a_pool_can_name_a_card_by_its_uuid() -> None:
    devices, _ = join(*BOTH, nvidia=(SMALL, BIG))
    (found,) = members(tuple(devices.values()), PoolLimits("big", ("GPU-big",)))
    assert found.name == "CUDA1"


@pytest.mark.parametrize("mask", ["1", "GPU-big", "GPU-b"])
def test_behind_a_mask_a_card_is_who_the_mask_says(mask: str) -> None:
    line = "CUDA0: card-big (24576 MiB, 24000 MiB free)"
    devices, _ = join(line, nvidia=(SMALL, BIG), environ={"CUDA_VISIBLE_DEVICES": mask})
    assert devices["CUDA0"].uuid == "GPU-big"


def test_a_device_that_the_driver_does_not_know_stays_as_listed() -> None:
    devices, _ = join("CUDA0: other (9000 MiB, 8000 MiB free)", nvidia=(SMALL, BIG))
    assert devices["CUDA0"].uuid == ""


def test_one_card_behind_two_runtimes_is_counted_once() -> None:
    """GP-03: a pool of the other card never has it."""
    lines = (
        "CUDA0: X 3090 (24124 MiB, 24000 MiB free)",
        "Vulkan0: X 3090 (24576 MiB, 24000 MiB free)",
        "Vulkan1: Y 580 (12288 MiB, 12000 MiB free)",
    )
    devices, (reason,) = join(*lines)
    assert {name: device.same_as for name, device in devices.items()} == {
        "CUDA0": "",
        "Vulkan0": "CUDA0",
        "Vulkan1": "",
    }
    assert (reason.code, reason.severity) == ("same_card_assumed", "info")
    every = tuple(devices.values())
    assert [one.name for one in members(every, PoolLimits("y", ("Vulkan1",)))] == ["Vulkan1"]
    assert [one.name for one in members(every, PoolLimits())] == ["CUDA0", "Vulkan1"]


def test_two_equal_cards_behind_two_runtimes_are_two() -> None:
    lines = [f"{kind}{n}: X (24000 MiB, 1 MiB free)" for kind in ("CUDA", "Vulkan") for n in (0, 1)]
    devices, _ = join(*lines)
    assert (devices["Vulkan0"].same_as, devices["Vulkan1"].same_as) == ("CUDA0", "CUDA1")


def test_two_cards_of_one_name_and_other_size_are_two() -> None:
    devices, _ = join("CUDA0: X (24000 MiB, 1 MiB free)", "Vulkan0: X (12000 MiB, 1 MiB free)")
    assert devices["Vulkan0"].same_as == ""


def test_names_of_drivers_in_brackets_do_not_count() -> None:
    devices, _ = join(
        "ROCm0: AMD Radeon RX 7900 XTX (24560 MiB, 1 MiB free)",
        "Vulkan0: AMD Radeon RX 7900 XTX (RADV NAVI31) (24560 MiB, 1 MiB free)",
    )
    assert devices["Vulkan0"].same_as == "ROCm0"


def test_a_card_without_figures_of_its_own_is_kept_as_unified() -> None:
    """GP-04: the driver says N/A, the engine lists 124610 MiB."""
    gb10 = NvidiaCard(0, "NVIDIA GB10", "GPU-gb10")
    devices, (reason,) = join("CUDA0: NVIDIA GB10 (124610 MiB, 109000 MiB free)", nvidia=(gb10,))
    device = devices["CUDA0"]
    assert (device.is_unified, device.total_bytes, device.free_bytes) == (
        True,
        124_610 * MIB,
        109_000 * MIB,
    )
    assert reason.code == "unified_memory"


def test_a_card_that_lists_no_memory_has_the_hosts() -> None:
    devices, _ = join("CUDA0: NVIDIA GB10 (0 MiB, 0 MiB free)")
    device = devices["CUDA0"]
    assert (device.is_unified, device.total_bytes, device.free_bytes) == (
        True,
        HOST.total_bytes,
        HOST.free_bytes,
    )


SLICES = (
    CardSlice("MIG-aaaa", "H100 MIG 1g.24gb", 24_000 * MIB, 23_000 * MIB),
    CardSlice("MIG-bbbb", "H100 MIG 2g.48gb", 48_000 * MIB, 47_000 * MIB),
)
CUT = NvidiaCard(0, "H100", "GPU-cut", "01:00.0", 94_000 * MIB, 90_000 * MIB, slices=SLICES)


@pytest.mark.parametrize("about", ["H100 MIG 1g.24gb", "H100"])
def test_slices_stand_in_place_of_their_card(about: str) -> None:
    """GP-06: the slices can be used, the card cannot."""
    devices, _ = join(f"CUDA0: {about} (24000 MiB, 23000 MiB free)", nvidia=(CUT,))
    assert {name: device.total_bytes // MIB for name, device in devices.items()} == {
        "MIG-aaaa": 24_000,
        "MIG-bbbb": 48_000,
    }


def test_a_pool_names_a_slice_by_its_uuid() -> None:
    devices, _ = join("CUDA0: H100 MIG 1g.24gb (24000 MiB, 23000 MiB free)", nvidia=(CUT,))
    (found,) = members(tuple(devices.values()), PoolLimits("slice", ("MIG-aaaa",)))
    assert found.total_bytes == 24_000 * MIB


def test_a_mask_of_slices_leaves_those() -> None:
    line = "CUDA0: H100 MIG 2g.48gb (48000 MiB, 47000 MiB free)"
    devices, _ = join(line, nvidia=(CUT,), environ={"CUDA_VISIBLE_DEVICES": "MIG-bbbb"})
    assert list(devices) == ["MIG-bbbb"]


@pytest.mark.parametrize(("architecture", "unified"), [("gfx1151", True), ("gfx1100", False)])
def test_radeons_get_their_architecture(architecture: str, unified: bool) -> None:
    amd = AmdCard(0, architecture, 9_000 * MIB, 0, bus_id="0000:03:00.0", utilisation=0.25)
    devices, _ = join("ROCm0: Radeon (9000 MiB, 8000 MiB free)", amd=(amd,))
    device = devices["ROCm0"]
    assert (device.architecture, device.is_unified, device.utilisation) == (architecture, unified, 0.25)


def test_an_integrated_vulkan_chip_is_unified() -> None:
    devices, _ = join("Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (2048 MiB, 2048 MiB free)")
    assert devices["Vulkan0"].is_unified
