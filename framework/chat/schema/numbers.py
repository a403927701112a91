"""Numbers of a JSON schema: ranges as alternatives over digits."""

from __future__ import annotations

import math
from typing import Any

from framework.chat.gbnf import repeat
from framework.chat.schema.visitor import Schema, SchemaError, Visitor

MAX_DIGITS = 16
"""Digits of an integer without a range, so that no model can go on with them for ever."""
INTEGER = f'"-"? ("0" | [1-9] [0-9]{{0,{MAX_DIGITS - 1}}})'
_FRACTION = f'("." [0-9]{{1,{MAX_DIGITS}}})?'
NUMBER = f'"-"? ("0" | [1-9] [0-9]{{0,{MAX_DIGITS - 1}}}) {_FRACTION} ([eE] [-+]? [0-9]{{1,3}})?'
_HUGE = 10 ** (MAX_DIGITS - 1)


def integer_rule(visitor: Visitor, schema: Schema, wish: str, path: str) -> str:
    """Integers between the bounds, both of which may be missing."""
    low, high = _whole_bounds(schema, path)
    if low is None and high is None:
        return visitor.rules.shared("integer", INTEGER)
    if low is not None and high is not None and low > high:
        raise SchemaError(path, "no integer is between its minimum and its maximum")
    return visitor.rules.add(wish, " | ".join(_signed(low, high)))


def number_rule(visitor: Visitor, schema: Schema, wish: str, path: str) -> str:
    """Numbers between whole bounds; bounds with a fraction are widened to the next whole number."""
    low, high = _bound(schema, "minimum", path), _bound(schema, "maximum", path)
    above, below = _bound(schema, "exclusiveMinimum", path), _bound(schema, "exclusiveMaximum", path)
    lows = [bound for bound in (low, above) if bound is not None]
    highs = [bound for bound in (high, below) if bound is not None]
    if not lows and not highs:
        return visitor.rules.shared("number", NUMBER)
    if lows and highs and max(lows) > min(highs):
        raise SchemaError(path, "no number is between its minimum and its maximum")
    floor = math.floor(max(lows)) if lows else None
    ceiling = math.ceil(min(highs)) if highs else None
    ways = []
    if floor is None or floor < 0:
        least = 0 if ceiling is None or ceiling > 0 else -ceiling
        ways += [f'"-" {way}' for way in _decimals(least, None if floor is None else -floor)]
    if ceiling is None or ceiling >= 0:
        ways += _decimals(0 if floor is None else max(0, floor), ceiling)
    return visitor.rules.add(wish, " | ".join(ways))


def _decimals(low: int, high: int | None) -> list[str]:
    """Numbers from `low` to `high`, both not negative: whole parts below the end, and the end itself."""
    if high is None:
        return [f"({' | '.join(_magnitudes(low, None))}) {_FRACTION}"]
    ways = [f'{_digits(str(high))} ("." "0"{{1,{MAX_DIGITS}}})?']
    if high > low:
        ways.insert(0, f"({' | '.join(_magnitudes(low, high - 1))}) {_FRACTION}")
    return ways


def _whole_bounds(schema: Schema, path: str) -> tuple[int | None, int | None]:
    low, high = _bound(schema, "minimum", path), _bound(schema, "maximum", path)
    above, below = _bound(schema, "exclusiveMinimum", path), _bound(schema, "exclusiveMaximum", path)
    lows = [math.ceil(low)] if low is not None else []
    highs = [math.floor(high)] if high is not None else []
    lows += [math.floor(above) + 1] if above is not None else []
    highs += [math.ceil(below) - 1] if below is not None else []
    return max(lows, default=None), min(highs, default=None)


def _bound(schema: Schema, key: str, path: str) -> int | float | None:
    """A bound; one beyond what is written here is none. The boolean form of old drafts says nothing alone."""
    value: Any = schema.get(key)
    if value is None or (isinstance(value, bool) and key.startswith("exclusive")):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise SchemaError(path, f"{key} has to be a number, not {value!r:.40}")
    return value if abs(value) < _HUGE else None


def _signed(low: int | None, high: int | None) -> list[str]:
    ways = []
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        ways += [f'"-" {way}' for way in _magnitudes(least, None if low is None else -low)]
    if high is None or high >= 0:
        ways += _magnitudes(0 if low is None else max(0, low), high)
    return ways


def _magnitudes(low: int, high: int | None) -> list[str]:
    """Ways to write the integers from `low` (not negative) to `high`, without leading zeros."""
    if high is None:
        size = len(str(low))
        longer = [f"[1-9] {repeat('[0-9]', size, MAX_DIGITS)}"]
        return _magnitudes(low, 10**size - 1) + longer
    ways = []
    for size in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (size - 1) if size > 1 else 0)
        ways += _same_length(str(first), str(min(high, 10**size - 1)))
    return ways


def _same_length(low: str, high: str) -> list[str]:
    """Ways to write the numbers between two of equal length: their common start, then what differs."""
    if low == high:
        return [_digits(low)]
    if len(low) == 1:
        return [f"[{low}-{high}]"]
    if low[0] == high[0]:
        return [f"[{low[0]}] ({' | '.join(_same_length(low[1:], high[1:]))})"]
    rest = len(low) - 1
    first, last = int(low[0]), int(high[0])
    ways = []
    if low[1:] != "0" * rest:
        ways.append(f"[{first}] ({' | '.join(_same_length(low[1:], '9' * rest))})")
        first += 1
    tail = []
    if high[1:] != "9" * rest:
        tail = [f"[{last}] ({' | '.join(_same_length('0' * rest, high[1:]))})"]
        last -= 1
    if first <= last:
        ways.append(f"[{first}-{last}] {repeat('[0-9]', rest, rest)}")
    return ways + tail


def _digits(text: str) -> str:
    return f'"{text}"'
