"""Prometheus' text format (version 0.0.4): families of samples, and the text that a scraper reads. Pure.

Names of models, keys and devices are text of others: label values are escaped, and two samples with the
same labels become one, since a scraper refuses the whole text for a line that is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["gauge", "counter", "histogram", "untyped"]
# The format escapes these in label values, and nothing else; in help texts quotes stay.
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a family, with its labels. `suffix` is `_bucket`, `_sum` or `_count` of a histogram."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its whole name, what it means, its samples."""

    name: str
    kind: Kind
    meaning: str
    samples: tuple[Sample, ...]


def render(families: Iterable[Family]) -> str:
    """The text. A family without samples says what it is all the same, so that a scraper knows of it."""
    return "".join(map(_family_text, families))


def _family_text(family: Family) -> str:
    lines = [
        f"# HELP {family.name} {family.meaning.translate(HELP_ESCAPES)}",
        f"# TYPE {family.name} {family.kind}",
    ]
    values: dict[str, float] = {}
    for sample in family.samples:
        labels = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in sample.labels.items())
        series = f"{family.name}{sample.suffix}" + (f"{{{labels}}}" if labels else "")
        values.setdefault(series, sample.value)
    lines += [f"{series} {number_text(value)}" for series, value in values.items()]
    return "\n".join(lines) + "\n"


def number_text(value: float) -> str:
    """All digits of a count; of a measured value no more than nine, which is more than it means."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"
