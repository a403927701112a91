"""Axes: round numbers that hold all values, and where they stand. Pure.

Values are whatever they are; NaN and infinities count as not there, so that no value of an engine can break a
picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count as count_up

# What people count in: 1, 2 or 5 of a power of ten.
ROUND = (1.0, 2.0, 5.0, 10.0)
MOST_STEPS = 4
# Steps are no smaller: a logarithm needs a number above 0, and parts of the smallest ones are 0.
SMALLEST = 1e-100
# Room for half of the highest label above the plot, and for the times below it. Pixels.
TOP, PLOT, BOTTOM = 8, 112, 20
HEIGHT = TOP + PLOT + BOTTOM
TEXT_GAP = 4
# From the middle of a text to its base line.
HALF_TEXT = 4
# Coordinates inside of the plot, whatever its size: 0 to this, from left to right and from top to bottom.
FIELD = 1000.0


@dataclass(frozen=True)
class YTick:
    """A line across the plot, `y` pixels from the top of the picture; its text stands beside it."""

    y: int
    text_y: int
    label: str


@dataclass(frozen=True)
class XTick:
    """A place below the plot, as a share of its width; `anchor` is the end of the text that stands there."""

    share: float
    label: str
    anchor: str


@dataclass(frozen=True)
class Scale:
    """A vertical axis from `low` to `high`, with lines at `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """How far up a value stands, from 0 to 1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def pixels(self, label: Callable[[float], str]) -> tuple[YTick, ...]:
        """The lines with what they mean."""
        places = (round(TOP + PLOT * (1 - self.share(at))) for at in self.ticks)
        return tuple(YTick(y, y + HALF_TEXT, label(at)) for y, at in zip(places, self.ticks, strict=True))


def finite(values: Iterable[float | None]) -> list[float]:
    """Those that are numbers."""
    return [value for value in values if value is not None and math.isfinite(value)]


def scale_of(
    values: Iterable[float | None], *, unit: float = 1.0, whole: bool = False, least: float = 0.0
) -> Scale:
    """An axis from 0 that holds all values and `least`, in round numbers of `unit`; `whole`: whole ones."""
    highest = max([least, *finite(values), 0.0]) or unit
    step = round_step(highest / unit / MOST_STEPS, whole=whole) * unit
    steps = max(1, math.ceil(highest / step - 1e-9))
    return Scale(0.0, steps * step, tuple(step * number for number in range(steps + 1)))


def round_step(least: float, *, whole: bool = False) -> float:
    """The smallest round number that is not below `least`, which is above 0."""
    power = 10.0 ** math.floor(math.log10(max(least, SMALLEST)))
    step = next(factor * power for factor in ROUND if factor * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step


def plain(value: float) -> str:
    """A number without its unit, which stands above the chart."""
    return f"{value:,.10g}"


def binary_unit(highest: int) -> float:
    """The unit that sizes up to `highest` bytes are counted in: a power of 1024."""
    return float(1024 ** next(n for n in count_up() if highest < 1024 ** (n + 1)))


def time_ticks(steps: int, step_s: int) -> tuple[XTick, ...]:
    """Places in a span that ends now, in minutes; the first text takes the room of the first quarter."""
    minutes = steps * step_s / 60
    inner = (XTick(share, f"{minutes * (1 - share):.0f}", "middle") for share in (0.5, 0.75))
    return (XTick(0.0, f"{minutes:.0f} min ago", "start"), *inner, XTick(1.0, "now", "end"))


def thinned(values: Sequence[float | None], most: int) -> tuple[tuple[float, float | None], ...]:
    """Places (shares of the width, in the middle of each value) and values. Of more than `most` the highest
    of each group stays, so that no peak is lost."""
    size = max(1, math.ceil(len(values) / most))
    groups = [values[start : start + size] for start in range(0, len(values), size)]
    return tuple(
        ((number * size + len(group) / 2) / len(values), max(finite(group), default=None))
        for number, group in enumerate(groups)
    )
