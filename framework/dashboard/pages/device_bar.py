"""The memory of one device as a picture of two lanes: above what is planned, below what is really used. Pure.

Used by the overview and the Pools page. What nobody can tell is not drawn, and the numbers beside it say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from framework.dashboard.formats import share
from framework.values.device import Device
from framework.values.pool import DeviceUse
from framework.values.units_text import UNKNOWN, percent, size

Kind = Literal["planned", "promised", "mapped", "measured", "foreign", "used"]
LABELS: dict[Kind, str] = {
    "planned": "planned for loaded models",
    "promised": "promised to starts under way",
    "mapped": "pages of model files",
    "measured": "really held by models",
    "foreign": "held by other programs",
    "used": "in use, by whomever",
}
PATTERNS: dict[Kind, str] = {
    "planned": "computed",
    "promised": "assumed",
    "mapped": "mapped",
    "measured": "measured",
    "foreign": "foreign",
    "used": "used",
}
# Pixels: the height of a lane, and where each begins.
LANE, UPPER, LOWER = 10, 0, 13
HEIGHT = LOWER + LANE
# What is there is seen, however small it is.
LEAST_WIDTH_SHARE = 0.004


@dataclass(frozen=True)
class Segment:
    """A part of a lane. Shares are of the whole picture, `y` is in pixels."""

    label: str
    pattern: str
    size_bytes: int
    start_share: float
    width_share: float
    y: int


@dataclass(frozen=True)
class DeviceBar:
    """The picture. `marks` holds how much may be planned, unless that is everything or not known."""

    segments: tuple[Segment, ...]
    marks: tuple[float, ...]
    description: str
    height: int = HEIGHT
    lane: int = LANE


@dataclass(frozen=True)
class Legend:
    """What a pattern stands for."""

    pattern: str
    label: str


LEGEND = tuple(Legend(PATTERNS[kind], LABELS[kind]) for kind in PATTERNS if kind != "mapped")
LEGEND_OF_BUDGETS = tuple(Legend(PATTERNS[kind], LABELS[kind]) for kind in PATTERNS)
"""With what counts against the budget of a pool in host memory."""


def bar_of_use(use: DeviceUse, budget_bytes: int | None = None, mapped_bytes: int = 0) -> DeviceBar:
    """A device of a pool; of its budget, where it has one, with the pages of files that count against it.

    What others hold is outside of a budget, and so is what is used by nobody knows whom.
    """
    whole = use.total_bytes if budget_bytes is None else budget_bytes
    planned: list[tuple[Kind, int]] = [
        ("planned", use.planned_bytes),
        ("promised", use.promised_bytes),
        ("mapped", mapped_bytes),
    ]
    used: list[tuple[Kind, int]] = [("measured", use.measured_bytes or 0)]
    if budget_bytes is None and use.measured_bytes is None:
        used = [("used", use.total_bytes - use.free_bytes)]
    elif budget_bytes is None:
        used.append(("foreign", use.foreign_bytes or 0))
    return _bar(
        (*_lane(planned, whole, UPPER), *_lane(used, whole, LOWER)),
        (share(use.usable_bytes, whole),) if 0 < use.usable_bytes < whole else (),
        use.name if budget_bytes is None else f"{use.name}, of the budget of {size(budget_bytes)}",
        use.free_bytes,
        use.total_bytes,
    )


def bar_of_device(device: Device) -> DeviceBar:
    """A device of no pool: what of it is in use."""
    used: list[tuple[Kind, int]] = [("used", device.total_bytes - device.free_bytes)]
    lane = tuple(_lane(used, device.total_bytes, LOWER))
    return _bar(lane, (), device.name, device.free_bytes, device.total_bytes)


def numbers_of(use: DeviceUse, mapped_bytes: int = 0) -> tuple[tuple[str, str], ...]:
    """The same in numbers, with their names."""
    numbers = [
        ("Total", size(use.total_bytes)),
        ("May be planned", _usable(use)),
        ("Planned", size(use.planned_bytes)),
        ("Promised", size(use.promised_bytes)),
        *([("Pages of files", size(mapped_bytes))] if mapped_bytes else []),
        ("Measured", size(use.measured_bytes)),
        ("Other programs", size(use.foreign_bytes)),
        ("Listed as free", size(use.free_bytes)),
    ]
    working = percent(use.utilisation)
    return (*numbers, *([("At work", working)] if working != UNKNOWN else []))


def _usable(use: DeviceUse) -> str:
    """What may be planned, and how much is: a budget can be a small part of a device, and of its picture."""
    if use.usable_bytes <= 0:
        return size(use.usable_bytes)
    taken = (use.planned_bytes + use.promised_bytes) / use.usable_bytes
    return f"{size(use.usable_bytes)}, {percent(taken)} taken"


def _lane(parts: list[tuple[Kind, int]], total_bytes: int, y: int) -> Iterator[Segment]:
    at = 0
    for kind, count in parts:
        if count <= 0:
            continue
        start = min(share(at, total_bytes), 1.0 - LEAST_WIDTH_SHARE)
        width = max(share(at + count, total_bytes) - start, LEAST_WIDTH_SHARE)
        yield Segment(LABELS[kind], PATTERNS[kind], count, start, width, y)
        at += count


def _bar(
    segments: tuple[Segment, ...], marks: tuple[float, ...], name: str, free_bytes: int, total_bytes: int
) -> DeviceBar:
    parts = "; ".join(f"{size(one.size_bytes)} {one.label}" for one in segments) or "nothing in use"
    return DeviceBar(segments, marks, f"{name}: {parts}. {size(free_bytes)} free of {size(total_bytes)}.")
