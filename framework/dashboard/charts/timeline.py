"""What was loaded when: a lane for each model, spans while it was loaded, marks for what happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from framework.dashboard.charts.axes import TEXT_GAP, XTick
from framework.values.event import Event

SpanLook = Literal["loading", "loaded"]
MarkLook = Literal["end", "evicted", "bad"]
TOP, LANE, BAR, BOTTOM = 2, 34, 10, 20
TEXT_BASE, BAR_TOP = 13, 18
# Lanes that a page has room for; those that moved last.
MOST_LANES = 20
# More rows nobody reads here; the events page has them all.
MOST_MOMENTS = 200
LEAST_WIDTH_SHARE = 0.003
# Text of a picture does not wrap; the table has names as they are.
LONGEST_NAME = 32

ENDS: Mapping[str, tuple[MarkLook, str]] = {
    "stopped": ("end", "unloaded"),
    "exited": ("bad", "its process ended by itself"),
    "unkillable": ("bad", "its process does not end"),
}
"""Kinds of events after which an instance is loaded no longer."""
TROUBLE: Mapping[str, tuple[MarkLook, str]] = {
    "evicted": ("evicted", "had to make room"),
    "start_failed": ("bad", "start failed"),
    "refused": ("bad", "start refused"),
    "crash_loop": ("bad", "given up after crashes"),
}
BEGINS = frozenset({"ready", "adopted"})
KINDS = frozenset({*ENDS, *TROUBLE, *BEGINS})


@dataclass(frozen=True)
class Span:
    """A time in which a model was loading or loaded. Shares are of the width."""

    look: SpanLook
    start_share: float
    width_share: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A moment; its shape and its words say what it was."""

    look: MarkLook
    share: float
    label: str


@dataclass(frozen=True)
class Lane:
    """One model. `text_y`, `bar_y` are pixels."""

    model: str
    text_y: int
    bar_y: int
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Moment:
    """One line of the table: what happened when to which model."""

    at: datetime
    model: str
    what: str


@dataclass(frozen=True)
class Timeline:
    """All lanes, those that moved last first; `left_out` counts models without a lane."""

    id: str
    height: int
    axis_y: int
    text_y: int
    description: str
    lanes: tuple[Lane, ...]
    x_ticks: tuple[XTick, ...]
    left_out: int
    moments: tuple[Moment, ...]
    """The same as a table, newest first."""


@dataclass
class _Past:
    """What is known of one model so far."""

    begun: dict[str, float] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    last_share: float = 0.0


def timeline(
    element: str,
    events: Sequence[Event],
    running: Mapping[str, frozenset[str]],
    begin: datetime,
    end: datetime,
    x_ticks: tuple[XTick, ...],
) -> Timeline:
    """The picture and its table. `events` are the newest ones, oldest first, some older than `begin`;
    `running` are the instances that are loaded now, by model."""
    window_s = (end - begin).total_seconds()
    pasts: dict[str, _Past] = {model: _Past() for model, names in running.items() if names}
    moments: list[Moment] = []
    for event in events:
        if event.model is None or event.kind not in KINDS:
            continue
        share = (event.at - begin).total_seconds() / window_s
        if share <= 1:
            past = pasts.setdefault(event.model, _Past())
            what = _take(past, event, share, window_s)
            if share >= 0:
                moments.append(Moment(event.at, event.model, what))
    for model, names in running.items():
        for name in names:
            # Loaded for longer than events are remembered.
            _close(pasts[model], pasts[model].begun.pop(name, 0.0), 1.0, "loaded")
    seen = {model: past for model, past in pasts.items() if past.spans or past.marks}
    ordered = sorted(seen, key=lambda model: -seen[model].last_share)
    lanes = tuple(_lane(number, model, seen[model]) for number, model in enumerate(ordered[:MOST_LANES]))
    axis_y = TOP + LANE * len(lanes)
    return Timeline(
        id=element,
        height=axis_y + BOTTOM,
        axis_y=axis_y,
        text_y=axis_y + BOTTOM - TEXT_GAP,
        description=_told(lanes),
        lanes=lanes,
        x_ticks=x_ticks,
        left_out=len(ordered) - len(lanes),
        moments=tuple(reversed(moments))[:MOST_MOMENTS],
    )


def _take(past: _Past, event: Event, share: float, window_s: float) -> str:
    """Take an event into account; what it was, in words."""
    past.last_share = max(past.last_share, share)
    instance = str(event.data.get("instance", ""))
    if event.kind in BEGINS:
        seconds = event.data.get("seconds")
        load_share = float(seconds) / window_s if isinstance(seconds, int | float) else 0.0
        if share > 0 and load_share > 0:
            _add(past, "loading", share - load_share, share, "loading")
        past.begun[instance] = share
        return "loaded" if event.kind == "ready" else "taken over while loaded"
    look, words = TROUBLE.get(event.kind) or ENDS[event.kind]
    if event.kind in ENDS and (begun := past.begun.pop(instance, None)) is not None:
        _close(past, begun, share, "loaded")
        if event.kind == "stopped" and past.begun:
            # Another process of the model serves on.
            words = "replaced"
    if share >= 0:
        past.marks.append(Mark(look, share, words))
    return words


def _close(past: _Past, begun: float, ended: float, label: str) -> None:
    if ended > 0:
        _add(past, "loaded", begun, ended, label)
        past.last_share = max(past.last_share, ended)


def _add(past: _Past, look: SpanLook, begun: float, ended: float, label: str) -> None:
    start = max(0.0, begun)
    past.spans.append(Span(look, start, max(LEAST_WIDTH_SHARE, min(1.0, ended) - start), label))


def _lane(number: int, model: str, past: _Past) -> Lane:
    top = TOP + LANE * number
    name = model if len(model) <= LONGEST_NAME else model[:LONGEST_NAME] + "…"
    return Lane(name, top + TEXT_BASE, top + BAR_TOP, tuple(past.spans), tuple(past.marks))


def _told(lanes: Iterable[Lane]) -> str:
    """The picture in a sentence for each model."""
    parts = []
    for lane in lanes:
        loaded = sum(span.width_share for span in lane.spans if span.look == "loaded")
        happened = "".join(f", {mark.label}" for mark in lane.marks)
        parts.append(f"{lane.model}: loaded for {min(1.0, loaded) * 100:.0f} % of the time{happened}.")
    return " ".join(parts)
