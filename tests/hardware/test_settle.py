"""Memory that ended processes held comes back late (04 §5, PL-13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.hardware.settle import expected_free, is_settled, missing_bytes, settled, tolerance_bytes
from framework.values.device import Device

MIB = 2**20
SIZES = st.integers(0, 200_000)


def card(free_mib: int, total_mib: int = 200_000, name: str = "CUDA0") -> Device:
    return Device(name, "gpu", total_mib * MIB, free_mib * MIB)


@pytest.mark.parametrize(
    ("old", "new", "stable"),
    [(40_000, 40_300, True), (40_000, 40_799, True), (80_000, 81_632, False), (1_000, 1_256, False)],
)
def test_two_samples_agree(old: int, new: int, stable: bool) -> None:
    assert is_settled([card(old)], [card(new)]) is stable


@pytest.mark.parametrize(("old", "new", "tolerance"), [(40_000, 40_300, 806), (40_000, 40_799, 815)])
def test_tolerance(old: int, new: int, tolerance: int) -> None:
    assert tolerance_bytes(old * MIB, new * MIB) // MIB == tolerance


def test_a_device_that_was_not_there_is_not_settled() -> None:
    assert not is_settled([card(1)], [card(1), card(1, name="CUDA1")])


def test_host_memory_moves_all_the_time() -> None:
    assert is_settled([Device("CPU", "cpu", 99, 0)], [Device("CPU", "cpu", 99 * MIB, 90 * MIB)])


def test_planning_waits_until_what_was_freed_shows() -> None:
    """PL-13: 13,100 MiB stay used for a while after the end, then 2,000 of 16,000."""
    before = card(2_900, 16_000)
    expected = expected_free([before], {"CUDA0": 11_100 * MIB})
    assert expected == {"CUDA0": 14_000 * MIB}
    assert not settled([before], expected)
    assert settled([card(14_000, 16_000)], expected)


def test_what_never_comes_back_can_be_told() -> None:
    before = card(2_900, 16_000)
    expected = expected_free([before], {"CUDA0": 11_100 * MIB})
    assert missing_bytes([before], expected) == {"CUDA0": 11_100 * MIB}
    assert missing_bytes([card(14_000, 16_000)], expected) == {}


def test_a_device_whose_free_memory_never_fell_keeps_nobody_waiting() -> None:
    remote = Device("RPC0", "rpc", 9_000 * MIB, 9_000 * MIB, endpoint="a:1")
    assert settled([remote], expected_free([remote], {"RPC0": 5_000 * MIB}))


def test_a_device_that_is_gone_keeps_nobody_waiting() -> None:
    assert settled([], {"CUDA0": 5})


@given(SIZES, SIZES, SIZES)
def test_what_is_expected_is_never_more_than_there_is(free: int, total: int, freed: int) -> None:
    before = card(min(free, total), total)
    expected = expected_free([before], {"CUDA0": freed * MIB})
    assert settled([card(total, total)], expected)
