"""What numbers of the loop guard must fit each other, by their names in requests (11 §19.2). Pure.

Called by the manifest, and by the native server for its command line and its requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PERIODS_IN_WINDOW = 3


@dataclass(frozen=True)
class Contradiction:
    """Two numbers that do not fit."""

    name: str
    value: int
    rule: str
    other: str
    other_value: int

    def text(self, names: Mapping[str, str]) -> str:
        """For a person, with the names that are used there."""
        return f"{names[self.name]} {self.value} must be {self.rule} {names[self.other]} {self.other_value}"


def contradiction(values: Mapping[str, Any]) -> Contradiction | None:
    """The first one in a complete set of numbers by their names; None: they fit."""

    def pair(name: str, rule: str, other: str) -> Contradiction:
        return Contradiction(name, values[name], rule, other, values[other])

    if values["window_tokens"] < values["min_repeated_coverage"]:
        return pair("window_tokens", "at least", "min_repeated_coverage")
    if values["max_period"] > values["window_tokens"] // PERIODS_IN_WINDOW:
        return pair("max_period", "at most a third of", "window_tokens")
    if values["min_reasoning_tokens"] < values["min_repeated_coverage"]:
        return pair("min_reasoning_tokens", "at least", "min_repeated_coverage")
    return None
