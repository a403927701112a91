"""A metric, and how its values are written in Prometheus' text form (12 §18.1). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "llamacpp:"
Labels = tuple[tuple[str, str], ...]
Series = Mapping[Labels, float]


@dataclass(frozen=True)
class Metric:
    """One family: what it counts, and how its value is read from a snapshot."""

    name: str
    kind: str
    help: str
    read: Callable[[Any], float | Series]
    """A number, or numbers by label; labelled series appear with their first event."""


def lines(metric: Metric, snapshot: Any) -> Iterable[str]:
    """The family's text."""
    name, value = PREFIX + metric.name, metric.read(snapshot)
    yield f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    series: Series = value if isinstance(value, Mapping) else {(): value}
    for labels, number in series.items():
        yield f"{name}{_shown_labels(labels)} {shown_number(number)}\n"


def events(label: str, counts: Mapping[str, float]) -> Series:
    """A series by one label, of what has happened at all."""
    return {((label, value),): count for value, count in counts.items() if count}


def shown_number(number: float) -> str:
    """Integers exactly, others with up to nine digits; what is no number is 0."""
    if isinstance(number, int):
        return str(number)
    return f"{number:.9g}" if math.isfinite(number) else "0"


def _shown_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
