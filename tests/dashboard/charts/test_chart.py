"""Lines and bars: gaps stay gaps, one value is a dot, and what cannot be seen is said."""

from __future__ import annotations

import math
import re

import pytest

from framework.dashboard.charts.axes import PLOT, TOP, plain, scale_of
from framework.dashboard.charts.chart import Chart, Series, bar_chart, line_chart, line_of


def drawn(*series: Series) -> Chart:
    scale = scale_of([value for one in series for value in one.values])
    return line_chart("c", "Title", "unit", series, scale, (), plain, empty="Nothing.")


def line(*values: float | None) -> tuple[str, str]:
    found = line_of(Series("a", "first", values), scale_of(values))
    return found.path, found.dots


def test_neighbours_are_joined_and_gaps_are_not() -> None:
    path, dots = line(0.0, 10.0, None, 5.0, 5.0)
    assert path == "M100.0 1000.0L300.0 0.0M700.0 500.0L900.0 500.0"
    assert dots == ""


def test_a_value_alone_is_a_dot() -> None:
    assert line(None, 10.0, None) == ("", "M500.0 0.0h0")


def test_what_is_no_number_is_a_gap() -> None:
    assert line(1.0, math.nan, 1.0) == ("", "M166.7 0.0h0M833.3 0.0h0")


@pytest.mark.parametrize("values", [(), (None, None), (math.nan,)], ids=["none", "unknown", "nan"])
def test_nothing_to_draw_says_so(values: tuple[float | None, ...]) -> None:
    chart = drawn(Series("a", "first", values))
    assert (chart.empty, chart.lines) == ("Nothing.", ())


def test_ten_thousand_values_stay_a_small_picture() -> None:
    chart = drawn(Series("a", "first", tuple(float(n % 100) for n in range(10_000))))
    assert len(chart.lines[0].path) < 12_000


def test_a_picture_is_told_in_words() -> None:
    chart = drawn(Series("fast", "first", (1.0, 3.0, 2.0)), Series("slow", "second", (None, None, None)))
    assert chart.description == "fast: lowest 1, highest 3, last 2. slow: nothing known."
    assert [entry.label for entry in chart.legend] == ["fast", "slow"]


def test_a_pointer_finds_all_values_of_a_place_and_none_where_none_is_known() -> None:
    series = (Series("fast", "first", (1.0, None, 2.0)), Series("slow", "second", (None, math.nan, 5.0)))
    names = ("2 min ago", "1 min ago", "this minute")
    chart = line_chart("c", "T", "u", series, scale_of([5.0]), (), plain, names=names, empty="Nothing.")
    assert [hover.label for hover in chart.hovers] == ["2 min ago: fast 1", "this minute: fast 2, slow 5"]
    assert [round(hover.start_share, 3) for hover in chart.hovers] == [0.0, 0.667]


def test_bars_stand_upon_each_other_and_are_never_invisible() -> None:
    series = (Series("good", "first", (100.0, 0.0)), Series("bad", "third", (0.01, None)))
    chart = bar_chart(
        "c", "T", "u", series, scale_of([100.01]), (), plain, names=("now", "then"), empty="Nothing."
    )
    good, bad = chart.bars
    assert (good.label, bad.label) == ("now: good 100", "now: bad 0.01")
    assert bad.height >= 2
    assert bad.y + bad.height == good.y
    assert good.y + good.height == TOP + PLOT


def test_path_data_is_made_of_numbers_only() -> None:
    path, dots = line(1e300, 1e-300, None, 2.0)
    assert re.fullmatch(r"[MLh0-9. -]*", path + dots)
