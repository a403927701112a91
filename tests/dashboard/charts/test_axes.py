"""Scales hold every value in round numbers, and nothing that an engine says breaks them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.dashboard.charts.axes import binary_unit, round_step, scale_of, thinned, time_ticks

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1e9))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        pytest.param([], (0.0, 0.5, 1.0), id="nothing"),
        pytest.param([0.0, None], (0.0, 0.5, 1.0), id="zero"),
        pytest.param([7.0], (0.0, 2.0, 4.0, 6.0, 8.0), id="one-value"),
        pytest.param([math.nan, math.inf, 3.0], (0.0, 1.0, 2.0, 3.0), id="no-numbers"),
        pytest.param([410.0], (0.0, 200.0, 400.0, 600.0), id="hundreds"),
        pytest.param([5e-324], (0.0, 1e-100), id="the-smallest-there-is"),
        pytest.param([0.04], (0.0, 0.01, 0.02, 0.03, 0.04), id="hundredths"),
    ],
)
def test_a_scale_is_round_and_holds_all(values: list[float | None], ticks: tuple[float, ...]) -> None:
    assert scale_of(values).ticks == pytest.approx(ticks)


@given(st.lists(NUMBERS, max_size=20))
def test_every_number_has_a_place_on_its_scale(values: list[float | None]) -> None:
    scale = scale_of(values)
    known = [value for value in values if value is not None and math.isfinite(value)]
    assert len(scale.ticks) <= 6
    assert all(0 <= scale.share(value) <= 1 for value in known)
    assert scale.high >= max(known, default=0) * (1 - 1e-6)


def test_counts_have_no_halves() -> None:
    assert scale_of([1.0], whole=True).ticks == (0.0, 1.0)


def test_sizes_are_counted_in_their_own_unit() -> None:
    gib = 2.0**30
    scale = scale_of([24 * gib], unit=binary_unit(24 * 2**30))
    assert [tick / gib for tick in scale.ticks] == [0, 10, 20, 30]


def test_a_step_is_never_below_what_is_needed() -> None:
    assert [round_step(x) for x in (0.011, 1.0, 1.1, 2.1, 6.0)] == pytest.approx([0.02, 1, 2, 5, 10])


def test_of_many_values_the_peaks_stay() -> None:
    values: list[float | None] = [1.0] * 10_000
    values[7777] = 99.0
    found = thinned(values, 600)
    assert len(found) <= 600
    assert max(value for _, value in found if value is not None) == 99.0
    assert all(0 < share < 1 for share, _ in found)


def test_an_hour_ends_now() -> None:
    ticks = time_ticks(60, 60)
    assert [(tick.share, tick.label) for tick in ticks] == [
        (0.0, "60 min ago"),
        (0.5, "30"),
        (0.75, "15"),
        (1.0, "now"),
    ]
