"""Bins: each value in exactly one, however many and however strange (MD-05)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.dashboard.charts.histogram import MOST_BINS, bins_of, histogram

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True, width=32))


@given(st.lists(NUMBERS, max_size=60))
def test_the_bins_add_up_to_the_values_that_are_numbers(values: list[float | None]) -> None:
    bins = bins_of(values)
    known = [value for value in values if value is not None and math.isfinite(value)]
    assert sum(one.count for one in bins) == len(known)
    assert len(bins) <= MOST_BINS


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=60))
def test_a_value_lies_within_its_bin(values: list[float]) -> None:
    bins = bins_of(values)
    for one in bins:
        inside = [v for v in values if one.low * (1 - 1e-9) <= v < one.high * (1 + 1e-9)]
        assert len(inside) >= one.count
    assert bins[0].count > 0
    assert bins[-1].count > 0


def test_bins_are_round_and_without_gaps() -> None:
    bins = bins_of([12.0, 33.0, 57.0])
    assert [one.low for one in bins] == [10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0]
    assert bins[-1].high == 60.0


@pytest.mark.parametrize("values", [[5.0], [5.0] * 10_000], ids=["one", "ten-thousand-alike"])
def test_values_that_are_alike_are_one_bin(values: list[float]) -> None:
    (only,) = bins_of(values)
    assert only.count == len(values)
    assert only.low <= 5.0 < only.high


def test_ten_thousand_values_are_all_counted() -> None:
    bins = bins_of([n / 100 for n in range(10_000)])
    assert sum(one.count for one in bins) == 10_000


def test_nothing_is_no_picture() -> None:
    assert bins_of([None, math.nan]) == ()
    assert histogram("h", "T", "u", (), "requests", empty="Nothing.").empty == "Nothing."


def test_a_bar_says_what_it_stands_for() -> None:
    chart = histogram("h", "T", "tokens/s", bins_of([41.0, 42.0, 55.0]), "requests", empty="")
    assert chart.bars[0].label == "41 to 42 tokens/s: requests 1"
    assert (chart.x_ticks[0].label, chart.x_ticks[-1].anchor) == ("41", "end")
