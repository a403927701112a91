"""How often which values came: bins of round width over what is there, each value in exactly one. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from framework.dashboard.charts.axes import XTick, finite, plain, round_step, scale_of
from framework.dashboard.charts.chart import Chart, Series, bar_chart

MOST_BINS = 16
MOST_LABELS = 4


@dataclass(frozen=True)
class Bin:
    """Values from `low` on and below `high`, in the unit of the values."""

    low: float
    high: float
    count: int


def bins_of(values: Iterable[float | None], most: int = MOST_BINS) -> tuple[Bin, ...]:
    """Bins without gaps from the lowest value to the highest; their counts add up to the values that are
    numbers. None for no values."""
    known = finite(values)
    if not known:
        return ()
    lowest, highest = min(known), max(known)
    # One less than allowed: the round beginning takes a bin of its own.
    spread = (highest - lowest) / max(1, most - 1)
    step = round_step(spread if spread > abs(highest) * 1e-9 else max(abs(highest), 1.0) / 10)
    first = math.floor(lowest / step)
    counts = [0] * (min(most, math.floor(highest / step) - first + 1))
    for value in known:
        counts[min(len(counts) - 1, max(0, math.floor(value / step) - first))] += 1
    return tuple(Bin((first + n) * step, (first + n + 1) * step, count) for n, count in enumerate(counts))


def histogram(element: str, title: str, unit: str, bins: tuple[Bin, ...], noun: str, *, empty: str) -> Chart:
    """The bins as bars; `noun` is what is counted."""
    series = Series(noun, "first", tuple(float(one.count) for one in bins))
    scale = scale_of(series.values, whole=True)
    names = tuple(bin_name(one, unit) for one in bins)
    return bar_chart(element, title, unit, (series,), scale, _ticks(bins), plain, names=names, empty=empty)


def bin_name(one: Bin, unit: str) -> str:
    """`20 to 30 tokens/s`."""
    return f"{plain(one.low)} to {plain(one.high)} {unit}"


def _ticks(bins: tuple[Bin, ...]) -> tuple[XTick, ...]:
    """Edges of bins, as many as have room."""
    if not bins:
        return ()
    every = math.ceil(len(bins) / MOST_LABELS)
    edges = [one.low for one in bins] + [bins[-1].high]
    return tuple(
        XTick(n / len(bins), plain(edge), "start" if n == 0 else "end" if n == len(bins) else "middle")
        for n, edge in enumerate(edges)
        # Next to the last edge there is no room for another one.
        if n == len(bins) or (n % every == 0 and len(bins) - n > every / 2)
    )
