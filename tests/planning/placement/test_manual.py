"""What manual mode can do with what it is told (04 §11.3, §13)."""

from __future__ import annotations

import math

import pytest

from framework.planning.placement.manual import experts_flag, granted_experts, granted_ratio, usable_ratio


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([1, -2, math.inf], (1.0, 0.0, 0.0)),
        ([math.nan, 2], (0.0, 2.0)),
        (["a"], ()),
        (None, ()),
    ],
)
def test_shares_that_an_engine_can_take(asked: list[object] | None, expected: tuple[float, ...]) -> None:
    assert usable_ratio(asked) == expected


@pytest.mark.parametrize(
    ("requested", "moe", "dense", "expected"),
    [(0, 10, 1, None), (3, 0, 0, None), (3, 10, 2, 5), (99, 10, 2, 12)],
)
def test_the_flag_of_experts_counts_dense_layers_too(
    requested: int, moe: int, dense: int, expected: int | None
) -> None:
    assert experts_flag(requested, moe, dense) == expected


def test_one_gpu_needs_no_shares() -> None:
    assert granted_ratio((1.0, 2.0), 1) == ((), None)


def test_as_many_shares_as_gpus_are_kept() -> None:
    assert granted_ratio((1.0, 2.0), 2) == ((1.0, 2.0), None)


@pytest.mark.parametrize("asked", [(1.0, 2.0, 3.0), (0.0, -1.0)], ids=["too-many", "nothing-above-0"])
def test_other_shares_are_dropped_and_told(asked: tuple[float, ...]) -> None:
    shares, reason = granted_ratio(asked, 2)
    assert shares == ()
    assert reason is not None
    assert reason.code == "tensor_split_dropped"


def test_more_experts_than_there_are_is_clamped_and_told() -> None:
    flag, reason = granted_experts(99, 10, 2)
    assert flag == 12
    assert reason is not None
    assert (reason.code, reason.evidence) == ("cpu_experts_clamped", {"asked": 99, "granted": 10})


def test_a_dense_model_has_none() -> None:
    flag, reason = granted_experts(3, 0, 0)
    assert flag is None
    assert reason is not None


def test_what_is_not_known_is_taken_as_asked() -> None:
    assert granted_experts(3, None, 0) == (3, None)
