"""Kinds of values: how help names them, and how a text becomes one. Used by the tables of flags.

Every reader raises ValueError with what was found and what is allowed; the parser adds the flag.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1
FLOAT32_MAX = 3.4028234e38
LONGEST_SHOWN = 80

ON_WORDS = ("on", "enabled", "true", "1")
OFF_WORDS = ("off", "disabled", "false", "0")


@dataclass(frozen=True)
class Value:
    """`word` is the value's name in the help text."""

    word: str
    read: Callable[[str], Any]


def shown(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A text from outside for one line of ours: quoted, without control characters, not too long."""
    brief = text if len(text) <= longest else f"{text[:longest]}…"
    return f"'{''.join(char if char.isprintable() else '?' for char in brief)}'"


def whole(low: int = -INT32_MAX, high: int = INT32_MAX, word: str = "N") -> Value:
    """A whole number, bounds included."""

    def read(text: str) -> int:
        if WHOLE.fullmatch(text) is None:
            raise ValueError(f"expected a whole number, found {shown(text)}")
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"found {number}, allowed is {_span(low, high)}")
        return number

    return Value(word, read)


def number(low: float = -FLOAT32_MAX, high: float = FLOAT32_MAX, word: str = "N") -> Value:
    """A finite number, bounds included."""

    def read(text: str) -> float:
        if NUMBER.fullmatch(text) is None or not math.isfinite(found := float(text)):
            raise ValueError(f"expected a number, found {shown(text)}")
        if not low <= found <= high:
            raise ValueError(f"found {found:g}, allowed is {_span(low, high)}")
        return found

    return Value(word, read)


def _span(low: float, high: float) -> str:
    if high in (INT32_MAX, UINT32_MAX, FLOAT32_MAX):
        return f"{low:g} and above" if low not in (-INT32_MAX, -FLOAT32_MAX) else "any that fits"
    return f"{low} to {high}"


def choice(*allowed: str, word: str = "") -> Value:
    """One of some words, in exactly this spelling."""
    return mapped({name: name for name in allowed}, word or "{" + ",".join(allowed) + "}")


def mapped(meanings: Mapping[str, Any], word: str) -> Value:
    """One of some words, and what each stands for."""

    def read(text: str) -> Any:
        if text not in meanings:
            raise ValueError(f"unknown value {shown(text)}, allowed are {', '.join(meanings)}")
        return meanings[text]

    return Value(word, read)


def on_off_auto(on: Any, off: Any, auto: Any) -> Value:
    """Three states, each with the words that llama-server takes for it."""
    meanings = {**dict.fromkeys(ON_WORDS, on), **dict.fromkeys(OFF_WORDS, off), "auto": auto, "-1": auto}
    return mapped(meanings, "[on|off|auto]")


def text_value(word: str = "STRING", *, may_be_empty: bool = False) -> Value:
    """Any text."""

    def read(text: str) -> str:
        if not text and not may_be_empty:
            raise ValueError("the value is empty")
        return text

    return Value(word, read)


def text_list(word: str) -> Value:
    """Texts without commas, separated by commas. Errors do not repeat them: some are secret."""

    def read(text: str) -> tuple[str, ...]:
        items = tuple(item.strip() for item in text.split(","))
        if not all(items):
            raise ValueError("expected items separated by commas, none of them empty")
        return items

    return Value(word, read)


def list_of(item: Value, word: str, most: int = 1024) -> Value:
    """A comma list of other values; an item with a comma is quoted, and a quote within it doubled."""

    def read(text: str) -> tuple[Any, ...]:
        items = _items(text)
        if len(items) > most:
            raise ValueError(f"found {len(items)} items, at most {most} are allowed")
        return tuple(item.read(part) for part in items)

    return Value(word, read)


def _items(text: str) -> list[str]:
    if "\n" in text or "\r" in text:
        raise ValueError("expected a comma-separated list on one line")
    try:
        rows = list(csv.reader([text], strict=True))
    except csv.Error as error:
        raise ValueError(f"not a comma-separated list: {error}") from error
    items = rows[0] if rows else []
    if not items or not all(items):
        raise ValueError(f"expected a comma-separated list without empty items, found {shown(text)}")
    return items


def boolean(text: str) -> bool:
    """The words of a variable, or behind `=`, for a switch."""
    if text in ON_WORDS:
        return True
    if text in OFF_WORDS:
        return False
    raise ValueError(f"unknown value {shown(text)}, allowed are {', '.join((*ON_WORDS, *OFF_WORDS))}")
