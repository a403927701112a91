"""Weights that can never fit into shared memory (04 §6.2)."""

from __future__ import annotations

import pytest

from framework.planning.placement.unified import check_unified, exceeds_memory
from framework.values.device import Device
from framework.values.pool import Resident
from framework.values.reason import Refused

MIB, GIB = 1 << 20, 1 << 30
CHIP = Device("ROCm0", "gpu", 60 * GIB, 50 * GIB, architecture="gfx1151:xnack-")
HOST = Device("CPU", "cpu", 64 * GIB, 30_720 * MIB)


@pytest.mark.parametrize(
    ("weight_bytes", "available_mib", "expected"),
    [
        (28 * GIB, 30_720, False),
        (28 * GIB + 1, 30_720, True),
        (40 * GIB, 30_720, True),
        (40 * GIB, 0, False),
    ],
    ids=["just-fits", "one-byte-more", "too-large", "nothing-known"],
)
def test_vectors(weight_bytes: int, available_mib: int, *, expected: bool) -> None:
    assert exceeds_memory(weight_bytes, available_mib * MIB) is expected


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        check_unified(40 * GIB, (CHIP,), (CHIP, HOST), ())
    assert caught.value.failure.reason.code == "unified_memory_refused"


def test_what_others_hold_can_be_had() -> None:
    other = Resident("o.0.1", "o", 0, "p", "resident", {"ROCm0": 20 * GIB})
    assert check_unified(40 * GIB, (CHIP,), (CHIP, HOST), (other,)) is not None


def test_what_others_hold_of_cards_of_their_own_cannot() -> None:
    other = Resident("o.0.1", "o", 0, "p", "resident", {"CUDA0": 20 * GIB})
    with pytest.raises(Refused):
        check_unified(40 * GIB, (CHIP,), (CHIP, HOST), (other,))


@pytest.mark.parametrize(
    ("weight_gib", "code"), [(28, None), (29, "does_not_fit")], ids=["fits-now", "others-have-to-leave"]
)
def test_what_others_hold_is_not_there_before_they_left(weight_gib: int, code: str | None) -> None:
    other = Resident("o.0.1", "o", 0, "p", "resident", {"ROCm0": 20 * GIB})  # 04 §6.3
    reason = check_unified(weight_gib * GIB, (CHIP,), (CHIP, HOST), (other,))
    assert (reason and reason.code) == code


def test_what_was_promised_is_not_there_any_more() -> None:
    other = Resident("o.0.1", "o", 0, "p", "promised", {"ROCm0": 5 * GIB})
    reason = check_unified(28 * GIB, (CHIP,), (CHIP, HOST), (other,))
    assert reason is not None
    assert reason.evidence["available_bytes"] == 25 * GIB


def test_cards_with_memory_of_their_own_are_not_checked() -> None:
    card = Device("ROCm0", "gpu", 24 * GIB, 20 * GIB, architecture="gfx1100")
    assert check_unified(40 * GIB, (card,), (card, HOST), ()) is None
