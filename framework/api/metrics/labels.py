"""Labels and short ways to make families, shared by the parts of `/metrics`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from framework.telemetry.exposition import Family, Sample
from framework.values.instance import InstanceView

PREFIX = "paddock_"


def gauge(name: str, meaning: str, samples: Iterable[Sample]) -> Family:
    """A value that goes up and down."""
    return Family(PREFIX + name, "gauge", meaning, tuple(samples))


def counter(name: str, meaning: str, samples: Iterable[Sample]) -> Family:
    """A sum that only grows, until what it belongs to is started anew."""
    return Family(PREFIX + name, "counter", meaning, tuple(samples))


def who(view: InstanceView) -> dict[str, str]:
    """The replica that an instance is of."""
    return {"model": view.model, "replica": str(view.replica)}
