"""Sets of Unicode code points, and how one character of such a set is written inside a JSON string."""

from __future__ import annotations

from collections.abc import Iterable

from framework.chat.gbnf import char_class, choice, quote

Ranges = tuple[tuple[int, int], ...]
"""Inclusive, sorted, without overlap."""

LAST = 0x10FFFF
ALL: Ranges = ((0, LAST),)
DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
BLANKS: Ranges = ((9, 13), (32, 32), (0xA0, 0xA0), (0x2028, 0x2029), (0xFEFF, 0xFEFF))
LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
# What JSON can't hold as it is, and surrogates, which UTF-8 has no place for.
_NOT_PLAIN: Ranges = ((0, 31), (34, 34), (92, 92), (127, 127), (0xD800, 0xDFFF))
_SHORT_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}


def union(sets: Iterable[Ranges]) -> Ranges:
    """Code points in any of the sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(part for ranges in sets for part in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Code points that are not in the set."""
    outside, after = [], 0
    for low, high in ranges:
        if low > after:
            outside.append((after, low - 1))
        after = high + 1
    if after <= LAST:
        outside.append((after, LAST))
    return tuple(outside)


def without(ranges: Ranges, removed: Ranges) -> Ranges:
    """Code points of the first set that are not in the second."""
    return complement(union((complement(ranges), removed)))


def has(ranges: Ranges, code: int) -> bool:
    """Whether a code point is in the set."""
    return any(low <= code <= high for low, high in ranges)


def in_json(ranges: Ranges) -> str | None:
    """One character of the set as a JSON string holds it; None when it can hold none of them."""
    plain = without(ranges, _NOT_PLAIN)
    ways = [char_class(plain)] if plain else []
    ways += [quote("\\" + short) for code, short in _SHORT_ESCAPES.items() if has(ranges, code)]
    return choice(ways) if ways else None


def text_in_json(text: str) -> str:
    """A literal for a text as it stands inside a JSON string."""
    return quote("".join(_escaped(char) for char in text))


def _escaped(char: str) -> str:
    code = ord(char)
    if code in _SHORT_ESCAPES:
        return "\\" + _SHORT_ESCAPES[code]
    return char if code > 31 else f"\\u{code:04x}"
