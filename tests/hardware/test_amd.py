"""AMD cards in the files of their driver (04 §4.8, GP-12), and memory that spills (GP-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.hardware.amd import AmdCard, SpillWatch, read_amd_cards

MIB = 2**20
NODES = "sys/class/kfd/kfd/topology/nodes"


def node(root: Path, number: int, *lines: str) -> None:
    """A node of the driver's topology."""
    place = root / NODES / str(number)
    place.mkdir(parents=True)
    (place / "properties").write_text("\n".join(lines) + "\n")


def render(root: Path, minor: int, **files: object) -> None:
    """The files of a render device."""
    place = root / "sys/class/drm" / f"renderD{minor}" / "device"
    place.mkdir(parents=True)
    for name, value in files.items():
        (place / name).write_text(f"{value}\n")


def gpu(version: int, minor: int) -> tuple[str, ...]:
    return ("simd_count 96", f"gfx_target_version {version}", f"drm_render_minor {minor}", "location_id 768")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A processor, a card that has no name, and a chip whose figures cannot be read."""
    node(tmp_path, 0, "cpu_cores_count 16", "simd_count 0")
    node(tmp_path, 1, *gpu(110501, 129))
    node(tmp_path, 2, *gpu(110000, 128))
    render(
        tmp_path,
        128,
        mem_info_vram_total=20_464 * MIB,
        mem_info_vram_used=464 * MIB,
        mem_info_gtt_used=430 * MIB,
        gpu_busy_percent=12,
    )
    return tmp_path


def test_processors_are_no_cards_and_a_card_without_a_name_is_called_by_its_chip(machine: Path) -> None:
    """GP-12: one GPU named gfx1100; the processor never listed."""
    assert [card.architecture for card in read_amd_cards(machine)] == ["gfx1100"]


def test_a_card_that_cannot_be_read_still_counts(machine: Path) -> None:
    (card,) = read_amd_cards(machine)
    assert card.ordinal == 1


def test_figures_of_a_card(machine: Path) -> None:
    (card,) = read_amd_cards(machine)
    assert (card.total_bytes, card.used_bytes, card.host_used_bytes) == (20_464 * MIB, 464 * MIB, 430 * MIB)
    assert (card.bus_id, card.utilisation) == ("0000:03:00.0", 0.12)


@pytest.mark.parametrize(
    ("version", "architecture"),
    [(110501, "gfx1151"), (110000, "gfx1100"), (90010, "gfx90a"), (90402, "gfx942")],
)
def test_names_of_chips(tmp_path: Path, version: int, architecture: str) -> None:
    node(tmp_path, 1, *gpu(version, 128))
    render(tmp_path, 128, mem_info_vram_total=1, mem_info_vram_used=0)
    assert read_amd_cards(tmp_path)[0].architecture == architecture


@pytest.mark.parametrize("text", ["", "nothing", "simd_count x", "simd_count -1", "\x00\xff" * 99])
def test_other_files_are_passed_over(tmp_path: Path, text: str) -> None:
    node(tmp_path, 1, text)
    assert read_amd_cards(tmp_path) == ()


def test_a_machine_without_the_driver_has_no_cards(tmp_path: Path) -> None:
    assert read_amd_cards(tmp_path) == ()


def card(used_mib: int, host_mib: int) -> tuple[AmdCard, ...]:
    return (AmdCard(0, "gfx1100", 20_464 * MIB, used_mib * MIB, host_mib * MIB),)


def test_memory_that_spills_is_told_with_both_figures() -> None:
    watch = SpillWatch()
    assert watch.look(card(464, 430)) == ()
    (reason,) = watch.look(card(19_950, 14_600))
    assert reason.code == "device_memory_spill"
    assert "19950 of 20464 MiB" in reason.message
    assert reason.evidence["host_used_bytes"] == 14_600 * MIB
    assert reason.evidence["host_used_before_bytes"] == 430 * MIB


@pytest.mark.parametrize(
    ("used_mib", "host_mib"),
    [pytest.param(19_950, 900, id="full but not spilled"), pytest.param(9_000, 14_600, id="not full")],
)
def test_other_use_of_host_memory_is_none(used_mib: int, host_mib: int) -> None:
    watch = SpillWatch()
    watch.look(card(464, 430))
    assert watch.look(card(used_mib, host_mib)) == ()
