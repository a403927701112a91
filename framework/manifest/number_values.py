"""Parsers for numbers with limits, and for numbers that a word may stand for. All raise `BadValue`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from framework.manifest.bad_value import BadValue
from framework.manifest.units import duration_text, parse_duration

# A year; more is a mistake in the unit.
LONGEST_DURATION_S = 365 * 86400.0
SHORTEST_DURATION_S = 0.001
# The largest contexts that models are trained for are about 10 million tokens.
LARGEST_CONTEXT = 2**24
MOST_THREADS = 1024
DEEPEST_DRAFT = 64
LARGEST_SIZE_BYTES = 2**50
SMALLEST_BODY_BYTES = 2**10
LARGEST_BODY_BYTES = 2**32
# llama.cpp's own limit of sequences per context.
MOST_SLOTS = 256
MOST_REPLICAS = 64
LARGEST_BATCH = 2**16
MOST_DEVICES = 64
LARGEST_SHARE = 1_000_000
THOUSANDS = re.compile(r"([0-9]{1,7})([kK]?)")


def whole_or(word: str, low: int, high: int) -> Callable[[Any], Any]:
    """Parser for `word` (gives None) or a whole number from `low` to `high`."""
    must_be = f'"{word}" or a whole number from {low:,} to {high:,}'

    def parse(value: Any) -> int | None:
        if value == word:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadValue("wrong_type", must_be, suggestion=_without_k(value))
        if not low <= value <= high:
            raise BadValue("out_of_range", must_be)
        return value

    return parse


def _without_k(value: Any) -> str:
    """`"8k"` and `"8192"` as the number that they mean."""
    match = THOUSANDS.fullmatch(value.strip()) if isinstance(value, str) else None
    return str(int(match.group(1)) * (1024 if match.group(2) else 1)) if match else ""


def limited(
    parse: Callable[[Any], Any], text: Callable[[Any], str], low: float, high: float
) -> Callable[[Any], Any]:
    """A parser that also refuses what is below `low` or above `high`; `text` writes the limits."""

    def parse_limited(value: Any) -> Any:
        parsed = parse(value)
        if not low <= parsed <= high:
            raise BadValue("out_of_range", f"from {text(low)} to {text(high)}")
        return parsed

    return parse_limited


def parse_depth(value: Any) -> int | str:
    """`adaptive`, `default` or a number of tokens."""
    if value in ("adaptive", "default"):
        return str(value)
    must_be = f'"adaptive", "default" or a whole number from 1 to {DEEPEST_DRAFT}'
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadValue("wrong_type", must_be)
    if not 1 <= value <= DEEPEST_DRAFT:
        raise BadValue("out_of_range", must_be)
    return value


def parse_unload_after(value: Any) -> float | None:
    """`never` as None, or a duration in seconds."""
    if value == "never":
        return None
    return limited(parse_duration, duration_text, 0.0, LONGEST_DURATION_S)(value)  # type: ignore[no-any-return]


def parse_tensor_split(value: Any) -> list[float]:
    """Shares of devices: numbers from 0, not all 0."""
    must_be = f"a list of at most {MOST_DEVICES} numbers from 0, not all 0, as in [3, 1]"
    if not isinstance(value, list) or any(
        isinstance(v, bool) or not isinstance(v, int | float) for v in value
    ):
        raise BadValue("wrong_type", must_be)
    if len(value) > MOST_DEVICES or any(not 0 <= share <= LARGEST_SHARE for share in value):
        raise BadValue("out_of_range", must_be)
    if value and not any(value):
        raise BadValue("out_of_range", must_be)
    return [float(share) for share in value]
