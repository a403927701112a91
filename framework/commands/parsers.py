"""Values of options and arguments as they are typed, checked in our own words.

Each function makes a parser for typer; what it refuses ends the command with one sentence (00 §5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from framework.commands.failure import BadUsage
from framework.values.units_text import read_whole_number, whole_number_text

LONGEST_SHOWN = 100


def whole_number(name: str, low: int, high: int, unit: str = "") -> Callable[[object], int]:
    """A whole number from `low` to `high`, of `unit`s."""

    def parse(value: object) -> int:
        text = str(value)
        if (number := read_whole_number(text, low, high)) is not None:
            return number
        raise refusal(name, text, whole_number_text(low, high, unit))

    return parse


def one_of(name: str, words: Sequence[str]) -> Callable[[object], str]:
    """One of a few words."""

    def parse(value: object) -> str:
        if value in words:
            return str(value)
        raise refusal(name, str(value), ", ".join(words))

    return parse


def text(name: str) -> Callable[[object], str]:
    """Text that can be sent: UTF-8, and not nothing."""

    def parse(value: object) -> str:
        given = str(value)
        try:
            given.encode()
        except UnicodeEncodeError:
            raise refusal(name, given, "text in UTF-8") from None
        if not given.strip():
            raise refusal(name, given, "a text that is not empty")
        return given

    return parse


def path(name: str) -> Callable[[object], Path]:
    """The path of a file."""

    def parse(value: object) -> Path:
        if isinstance(value, str) and not value.strip():
            raise refusal(name, value, "the path of a file")
        return Path(str(value))

    return parse


def refusal(name: str, found: str, allowed: str) -> BadUsage:
    """The end of a command that was called wrongly."""
    shown = found if len(found) <= LONGEST_SHOWN else f"{found[:LONGEST_SHOWN]}…"
    return BadUsage(f"{name}: found {shown!r}, allowed is {allowed}.")
