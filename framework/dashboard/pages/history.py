"""The last hour as charts with the same numbers in a table: of a model, of its drafts, of devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from framework.dashboard.charts.axes import XTick, binary_unit, plain, scale_of, time_ticks
from framework.dashboard.charts.chart import Chart, Series, bar_chart, line_chart
from framework.dashboard.pages.figures import FigureRow, Figures, FigureTable
from framework.dashboard.pages.ids import element_id
from framework.values.history import STEP_S, STEPS, DeviceHistory, ModelHistory, ModelStep
from framework.values.units_text import UNKNOWN, count, counted, duration, percent, rate, size, tokens

X_TICKS: tuple[XTick, ...] = time_ticks(STEPS, STEP_S)
QUIET = "Nothing was asked of it in the last hour."
AGO = (*(f"{minutes} min ago" for minutes in range(STEPS - 1, 0, -1)), "this minute")
"""What each minute is called."""
MODEL_COLUMNS = (
    *("Answered", "Left", "Refused", "Failed", "First token, median", "First token, 95 %"),
    *("Generation", "Prompt", "Generated", "Busy slots", "Waiting"),
)
MS_PER_S = 1000
# As many pages as are looked at; drawn once for all who look.
DRAWN = 64


@lru_cache(DRAWN)
def model_section(history: ModelHistory) -> Figures:
    """First tokens, speed, requests and slots of a model."""
    element = element_id("hour", history.model)
    busy = [step for step in history.steps if step.requests or step.busy_slots or step.waiting]
    charts = tuple(_model_charts(element, history)) if busy else ()
    return Figures(
        element,
        "Last hour",
        _since(history.steps) if busy else QUIET,
        charts,
        FigureTable(
            f"{element}-table",
            f"The last hour of {history.model}, by minutes",
            "Minute",
            MODEL_COLUMNS,
            tuple(FigureRow(_clock(step.at), _model_cells(step)) for step in reversed(busy)),
        ),
    )


@lru_cache(DRAWN)
def draft_section(history: ModelHistory) -> Figures | None:
    """Depth and acceptance over time; None where nothing was drafted."""
    known = [step for step in history.steps if step.drafted or step.depth]
    if not known:
        return None
    element = element_id("drafts", history.model)
    depths = _padded([step.depth for step in history.steps])
    shares = _padded([step.acceptance for step in history.steps])
    charts = [
        line_chart(
            f"{element}-acceptance",
            "Accepted",
            "of the drafted tokens",
            (Series("accepted", "first", shares),),
            scale_of((), least=1.0),
            X_TICKS,
            percent,
            names=AGO,
            empty="Nothing was drafted in the last hour.",
        ),
        line_chart(
            f"{element}-depth",
            "Depth",
            "tokens, mean of busy slots",
            (Series("depth", "first", depths),),
            scale_of(depths, least=1.0),
            X_TICKS,
            lambda value: f"{value:g}",
            names=AGO,
            words=_depth,
            empty="The engine does not tell the depth of its slots; the one that it was started with holds.",
        ),
    ]
    rows = tuple(
        FigureRow(
            _clock(step.at),
            (tokens(step.drafted), tokens(step.accepted), percent(step.acceptance), _depth(step.depth)),
        )
        for step in reversed(known)
    )
    columns = ("Drafted", "Accepted", "Share", "Depth")
    table = FigureTable(f"{element}-table", f"Drafts of {history.model}, by minutes", "Minute", columns, rows)
    note = _since(history.steps)
    return Figures(element, "Drafts in the last hour", note, tuple(charts), table, nested=True)


@lru_cache(DRAWN)
def devices_section(histories: tuple[DeviceHistory, ...]) -> Figures:
    """The memory of each device over time."""
    charts = tuple(_device_chart(one) for one in histories)
    moments = [step.at for step in histories[0].steps] if histories else []
    rows = []
    for place, at in reversed(list(enumerate(moments))):
        steps = [one.steps[place] for one in histories]
        if any(step.used_bytes is not None for step in steps):
            cells = (size(value) for step in steps for value in (step.used_bytes, step.planned_bytes))
            rows.append(FigureRow(_clock(at), tuple(cells)))
    columns = tuple(f"{one.device}, {what}" for one in histories for what in ("taken", "planned"))
    return Figures(
        "devices-hour",
        "Memory in the last hour",
        "The most of each minute; taken is by anybody, planned by models of Paddock."
        if charts
        else "No device was seen yet.",
        charts,
        FigureTable(
            "devices-hour-table", "Memory of the devices, by minutes", "Minute", columns, tuple(rows)
        ),
    )


def _model_charts(element: str, history: ModelHistory) -> Sequence[Chart]:
    steps = history.steps
    return (
        _first_token_chart(element, steps),
        _speed_chart(element, steps),
        _request_chart(element, steps),
        _slot_chart(element, steps),
    )


def _first_token_chart(element: str, steps: Sequence[ModelStep]) -> Chart:
    series = (
        Series("median", "first", _padded([step.first_token_p50_s for step in steps])),
        Series("95 % are faster", "second", _padded([step.first_token_p95_s for step in steps])),
    )
    scale = scale_of([value for one in series for value in one.values])
    return line_chart(
        f"{element}-first",
        "First token",
        "after the request came",
        series,
        scale,
        X_TICKS,
        short_time,
        names=AGO,
        empty="No answer began in the last hour.",
    )


def _speed_chart(element: str, steps: Sequence[ModelStep]) -> Chart:
    series = Series("median of answers", "first", _padded([step.generation_tokens_per_s for step in steps]))
    return line_chart(
        f"{element}-speed",
        "Generation",
        "tokens/s of one answer",
        (series,),
        scale_of(series.values),
        X_TICKS,
        plain,
        names=AGO,
        words=rate,
        empty="The engine told no speed in the last hour.",
    )


def _request_chart(element: str, steps: Sequence[ModelStep]) -> Chart:
    series = (
        Series("answered", "first", _padded([float(step.answered) for step in steps])),
        Series("left or refused", "second", _padded([float(step.left + step.refused) for step in steps])),
        Series("failed", "third", _padded([float(step.failed) for step in steps])),
    )
    highest = [float(step.requests) for step in steps]
    return bar_chart(
        f"{element}-requests",
        "Requests",
        "that ended, each minute",
        series,
        scale_of(highest, whole=True),
        X_TICKS,
        plain,
        names=AGO,
        empty="No request ended in the last hour.",
    )


def _slot_chart(element: str, steps: Sequence[ModelStep]) -> Chart:
    series = (
        Series("busy slots", "first", _padded([_float(step.busy_slots) for step in steps])),
        Series("waiting requests", "second", _padded([_float(step.waiting) for step in steps])),
    )
    most_slots = float(max((step.slots or 0 for step in steps), default=0))
    values = [value for one in series for value in one.values]
    return line_chart(
        f"{element}-slots",
        "Busy slots and queue",
        f"most at once, of {counted(int(most_slots), 'slot')}" if most_slots else "most at once",
        series,
        scale_of(values, whole=True, least=max(1.0, most_slots)),
        X_TICKS,
        plain,
        names=AGO,
        empty="No slot was seen in the last hour.",
    )


def _device_chart(history: DeviceHistory) -> Chart:
    series = (
        Series("taken", "first", _padded([_float(step.used_bytes) for step in history.steps])),
        Series("planned", "second", _padded([_float(step.planned_bytes) for step in history.steps])),
    )
    total = history.total_bytes
    return line_chart(
        element_id("device-hour", history.device),
        history.device,
        f"of {size(total)}",
        series,
        scale_of([v for one in series for v in one.values], unit=binary_unit(total), least=float(total)),
        X_TICKS,
        lambda value: size(int(value)),
        names=AGO,
        empty="Its memory was not seen in the last hour.",
    )


def _model_cells(step: ModelStep) -> tuple[str, ...]:
    of_slots = f" of {step.slots:,}" if step.slots else ""
    return (
        *(count(number) for number in (step.answered, step.left, step.refused, step.failed)),
        short_time(step.first_token_p50_s),
        short_time(step.first_token_p95_s),
        rate(step.generation_tokens_per_s),
        rate(step.prompt_tokens_per_s),
        tokens(step.generated_tokens),
        UNKNOWN if step.busy_slots is None else f"{step.busy_slots:,}{of_slots}",
        count(step.waiting),
    )


def short_time(seconds: float | None) -> str:
    """`45 ms`, `2.3 s`, `1 min 5 s`: milliseconds where tenths of a second would say nothing."""
    if seconds is None or not 0 < seconds < 1:
        return duration(seconds)
    return f"{seconds * MS_PER_S:.0f} ms"


def _padded(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """An hour of values: what is not known yet is before them."""
    return (None,) * (STEPS - len(values)) + tuple(values)


def _since(steps: Sequence[ModelStep]) -> str:
    missing = STEPS - len(steps)
    if missing <= 0:
        return ""
    return f"Known for {duration(float(len(steps) * STEP_S))}; what was before is not."


def _clock(at: datetime) -> str:
    """A minute in the time zone of this machine."""
    return f"{at.astimezone():%H:%M}"


def _depth(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:g} tokens"


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
