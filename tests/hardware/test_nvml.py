"""NVIDIA cards as their driver tells of them; what it does not tell is None (GP-04, GP-06)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from framework.hardware.nvml import read_nvidia_cards

GIB = 2**30


class NotSupportedError(Exception):
    """What the library raises for a question that a card does not answer."""


class Driver:
    """Answers as NVML does, from plain data; every question without an answer is not supported."""

    NVMLError = NotSupportedError

    def __init__(self, *cards: dict[str, Any]) -> None:
        self._cards = cards

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - names of the library
        return len(self._cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        return self._cards[index]

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: dict[str, Any], place: int) -> Any:  # noqa: N802
        return self._answer(card, "slices")[place]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: dict[str, Any]) -> int:  # noqa: N802
        return len(self._answer(card, "slices"))

    def __getattr__(self, question: str) -> Any:
        return lambda card: self._answer(card, question.removeprefix("nvmlDeviceGet"))

    def _answer(self, card: dict[str, Any], name: str) -> Any:
        if name not in card:
            raise NotSupportedError(name)
        return card[name]


def memory(total_gib: int, free_gib: int) -> SimpleNamespace:
    return SimpleNamespace(total=total_gib * GIB, free=free_gib * GIB)


CARD: dict[str, Any] = {
    "Name": "NVIDIA H100 NVL",
    "UUID": "GPU-1",
    "PciInfo": SimpleNamespace(busId=b"00000000:41:00.0"),
    "MemoryInfo": memory(94, 90),
    "UtilizationRates": SimpleNamespace(gpu=37),
    "ComputeRunningProcesses": [
        SimpleNamespace(pid=7, usedGpuMemory=3 * GIB),
        SimpleNamespace(pid=8, usedGpuMemory=None),
    ],
    "GraphicsRunningProcesses": [SimpleNamespace(pid=9, usedGpuMemory=1 * GIB)],
}


def test_a_card_with_all_answers() -> None:
    (card,) = read_nvidia_cards(Driver(CARD))
    assert (card.index, card.name, card.uuid, card.bus_id) == (
        0,
        "NVIDIA H100 NVL",
        "GPU-1",
        "00000000:41:00.0",
    )
    assert (card.total_bytes, card.free_bytes, card.utilisation) == (94 * GIB, 90 * GIB, 0.37)


def test_processes_of_which_no_size_is_told_are_left_out() -> None:
    (card,) = read_nvidia_cards(Driver(CARD))
    assert card.used_by_pid == {7: 3 * GIB, 9: 1 * GIB}


def test_a_card_without_figures_is_still_a_card() -> None:
    """GP-04: `0, NVIDIA GB10, [N/A], [N/A], [N/A]`."""
    (card,) = read_nvidia_cards(Driver({"Name": "NVIDIA GB10", "UUID": "GPU-2"}))
    assert (card.name, card.total_bytes, card.free_bytes, card.utilisation) == (
        "NVIDIA GB10",
        None,
        None,
        None,
    )


def test_slices_of_a_card() -> None:
    """GP-06: `MIG 1g.24gb Device 0 (UUID MIG-aaaa)` of a card of 94 GiB."""
    part = {"UUID": "MIG-aaaa", "Name": "NVIDIA H100 NVL MIG 1g.24gb", "MemoryInfo": memory(24, 23)}
    (card,) = read_nvidia_cards(Driver({**CARD, "MigMode": [1, 1], "slices": [part, {"UUID": "MIG-b"}]}))
    assert [(one.uuid, one.total_bytes) for one in card.slices] == [("MIG-aaaa", 24 * GIB)]


def test_a_card_that_is_not_cut_has_no_slices() -> None:
    (card,) = read_nvidia_cards(Driver({**CARD, "MigMode": [0, 0]}))
    assert card.slices == ()


@pytest.mark.parametrize("busy", [-1, None, "x"])
def test_work_that_makes_no_sense_is_not_known(busy: Any) -> None:
    (card,) = read_nvidia_cards(Driver({**CARD, "UtilizationRates": SimpleNamespace(gpu=busy)}))
    assert card.utilisation is None


def test_names_are_made_harmless() -> None:
    (card,) = read_nvidia_cards(Driver({**CARD, "Name": "a\x1b[31mb\n" + "c" * 500}))
    assert card.name.startswith("a[31mb")
    assert len(card.name) == 120


def test_this_machine_is_asked_without_a_fault() -> None:
    assert isinstance(read_nvidia_cards(), tuple)
