"""Use in the last period, in two numbers, against counting every use one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.sliding_window import SlidingWindow


def window(limit_used: int = 0) -> SlidingWindow:
    return SlidingWindow(60.0, 1000.0, limit_used)


def test_a_limit_may_be_used_at_once() -> None:
    one = window()
    for _ in range(5):
        assert one.wait_s(5, 1000.0) == 0.0
        one.add(1, 1000.0)
    assert one.wait_s(5, 1000.0) > 0


@pytest.mark.parametrize(
    ("used", "at_s"),
    [(5, 1000.0), (5, 1059.0), (7, 1030.0), (500, 1010.0)],
    ids=["now", "late", "over", "debt"],
)
def test_after_the_wait_one_more_may_be_used_and_not_before(used: int, at_s: float) -> None:
    one = window(used)
    wait_s = one.wait_s(5, at_s)
    assert wait_s > 0
    assert one.wait_s(5, at_s + wait_s - 0.5) > 0
    assert one.wait_s(5, at_s + wait_s + 0.001) == 0.0


def test_the_border_of_two_windows_gives_nobody_twice_the_limit() -> None:
    one = window()
    one.add(100, 1059.0)
    assert one.wait_s(100, 1061.0) == 0.0
    one.add(2, 1061.0)
    assert one.wait_s(100, 1061.0) > 0


def test_after_two_periods_nothing_is_left() -> None:
    one = window(100)
    assert one.used(1121.0) == 0.0
    assert one.wait_s(100, 1121.0) == 0.0


def test_a_limit_of_nothing_is_never_met() -> None:
    assert window().wait_s(0, 1000.0) == 60.0


@given(st.lists(st.floats(0, 5), max_size=200), st.integers(1, 20))
def test_over_any_two_periods_no_more_than_three_limits_pass(gaps_s: list[float], limit: int) -> None:
    one, now, taken = SlidingWindow(10.0, 0.0), 0.0, []
    for gap_s in gaps_s:
        now += gap_s
        if one.wait_s(limit, now) == 0.0:
            one.add(1, now)
            taken.append(now)
    for start in taken:
        assert sum(start <= at < start + 20.0 for at in taken) <= 3 * limit


def test_a_clock_that_stands_still_or_goes_back_changes_nothing() -> None:
    one = window(3)
    assert one.used(999.0) == 3
    assert one.wait_s(5, 999.0) == 0.0
