"""A chart as its template prints it: lines and bars over one axis, with words for who cannot see it.

Pure. Lines are drawn in a field of 1000 by 1000 that is stretched to the plot; bars and texts are not
stretched, so they stand at shares of the width and pixels of the height.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from framework.dashboard.charts.axes import (
    FIELD,
    HEIGHT,
    PLOT,
    TEXT_GAP,
    TOP,
    Scale,
    XTick,
    YTick,
    finite,
    thinned,
)

Look = Literal["first", "second", "third"]
"""How a series is drawn: colour, and dashes or a pattern as well."""
# More points than pixels of a wide page say nothing.
MOST_POINTS = 600
# What is there is seen, however small it is. Pixels.
LEAST_BAR = 2
BAR_SHARE = 0.84


@dataclass(frozen=True)
class Series:
    """Values from left to right; None is not known."""

    label: str
    look: Look
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Line:
    """`path` joins neighbours, `dots` are values without one. Both are path data, perhaps empty."""

    look: Look
    path: str
    dots: str


@dataclass(frozen=True)
class Bar:
    """Place and width are shares of the plot's width, `y` and `height` pixels. `label` says what it is."""

    look: Look
    start_share: float
    width_share: float
    y: int
    height: int
    label: str


@dataclass(frozen=True)
class Hover:
    """A place of the plot with all that is known there, for a pointer above it. Shares are of the width."""

    start_share: float
    width_share: float
    label: str


@dataclass(frozen=True)
class Legend:
    """What a look means."""

    look: Look
    label: str


@dataclass(frozen=True)
class Chart:
    """One picture. `empty` stands in its place while there is nothing to draw."""

    id: str
    title: str
    unit: str
    description: str
    height: int
    plot_y: int
    plot_height: int
    text_y: int
    """Where the texts of the horizontal axis stand."""
    y_ticks: tuple[YTick, ...]
    x_ticks: tuple[XTick, ...]
    lines: tuple[Line, ...]
    bars: tuple[Bar, ...]
    hovers: tuple[Hover, ...]
    legend: tuple[Legend, ...]
    empty: str


def line_chart(
    element: str,
    title: str,
    unit: str,
    series: Sequence[Series],
    scale: Scale,
    x_ticks: tuple[XTick, ...],
    label: Callable[[float], str],
    *,
    names: Sequence[str] = (),
    words: Callable[[float], str] | None = None,
    empty: str,
) -> Chart:
    """Lines over time; `names` are of the places. `label` turns a value into what stands at the axis; `words`
    does so with its unit, where that only stands above the chart."""
    chart = _framed(element, title, unit, series, scale, x_ticks, label, empty)
    if chart.empty:
        return chart
    lines = tuple(line_of(one, scale) for one in series)
    return replace(chart, lines=lines, hovers=tuple(_hovers(series, words or label, names)))


def _framed(
    element: str,
    title: str,
    unit: str,
    series: Sequence[Series],
    scale: Scale,
    x_ticks: tuple[XTick, ...],
    label: Callable[[float], str],
    empty: str,
) -> Chart:
    """Axes, words and legend, without what is drawn between them; `empty` where there is no value."""
    if not any(finite(one.values) for one in series):
        return _nothing(element, title, unit, empty)
    return Chart(
        id=element,
        title=title,
        unit=unit,
        description=" ".join(_told(one, label) for one in series),
        height=HEIGHT,
        plot_y=TOP,
        plot_height=PLOT,
        text_y=HEIGHT - TEXT_GAP,
        y_ticks=scale.pixels(label),
        x_ticks=x_ticks,
        lines=(),
        bars=(),
        hovers=(),
        legend=_legend(series),
        empty="",
    )


def bar_chart(
    element: str,
    title: str,
    unit: str,
    series: Sequence[Series],
    scale: Scale,
    x_ticks: tuple[XTick, ...],
    label: Callable[[float], str],
    *,
    names: Sequence[str] = (),
    empty: str,
) -> Chart:
    """Bars, those of one place upon each other; `names` say what stands at each place."""
    chart = _framed(element, title, unit, series, scale, x_ticks, label, empty)
    return chart if chart.empty else replace(chart, bars=tuple(_bars(series, scale, label, names)))


def line_of(series: Series, scale: Scale) -> Line:
    """A series as path data."""
    segments: list[list[str]] = [[]]
    for share, value in thinned(series.values, MOST_POINTS):
        if value is None:
            segments.append([])
        else:
            segments[-1].append(f"{share * FIELD:.1f} {FIELD * (1 - scale.share(value)):.1f}")
    return Line(
        series.look,
        "".join(f"M{'L'.join(points)}" for points in segments if len(points) > 1),
        "".join(f"M{points[0]}h0" for points in segments if len(points) == 1),
    )


def _bars(
    series: Sequence[Series], scale: Scale, label: Callable[[float], str], names: Sequence[str]
) -> Iterable[Bar]:
    places = max(len(one.values) for one in series)
    for place in range(places):
        below = 0.0
        for one in series:
            value = next(iter(finite(one.values[place : place + 1])), 0.0)
            if value <= 0:
                continue
            bottom = round(TOP + PLOT * (1 - scale.share(below)))
            top = min(bottom - LEAST_BAR, round(TOP + PLOT * (1 - scale.share(below + value))))
            name = f"{names[place]}: " if place < len(names) else ""
            yield Bar(
                one.look,
                (place + (1 - BAR_SHARE) / 2) / places,
                BAR_SHARE / places,
                top,
                bottom - top,
                f"{name}{one.label} {label(value)}",
            )
            below += value


def _hovers(series: Sequence[Series], label: Callable[[float], str], names: Sequence[str]) -> Iterable[Hover]:
    for place, name in enumerate(names):
        known = [(one.label, value) for one in series for value in finite(one.values[place : place + 1])]
        if known:
            told = ", ".join(f"{what} {label(value)}" for what, value in known)
            yield Hover(place / len(names), 1 / len(names), f"{name}: {told}")


def _told(series: Series, label: Callable[[float], str]) -> str:
    """A series in a sentence."""
    known = finite(series.values)
    if not known:
        return f"{series.label}: nothing known."
    lowest, highest = label(min(known)), label(max(known))
    return f"{series.label}: lowest {lowest}, highest {highest}, last {label(known[-1])}."


def _legend(series: Sequence[Series]) -> tuple[Legend, ...]:
    """Where there is more than one to tell apart."""
    return tuple(Legend(one.look, one.label) for one in series) if len(series) > 1 else ()


def _nothing(element: str, title: str, unit: str, empty: str) -> Chart:
    return Chart(element, title, unit, "", 0, 0, 0, 0, (), (), (), (), (), (), empty)
