"""One setting as it was read, from the command line or the environment; used by settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from framework.nativeserver.flags.flag import Flag


@dataclass(frozen=True)
class Reading:
    """A flag's value, and who said it."""

    flag: Flag
    value: Any
    source: str
    """The spelling, or the name of the variable."""
    from_environment: bool = False


def switched(flag: Flag, is_on: bool, *, source: str, from_environment: bool = False) -> Reading | None:
    """A switch, on or off; None for one that is off when nothing is said."""
    if not is_on and not flag.negations:
        return None
    return Reading(flag, flag.constant if is_on else False, source, from_environment)


def check_text(text: str) -> None:
    """Raises ValueError for what no file name and no text of ours can be."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("expected text in UTF-8, found other bytes") from error
    if "\0" in text:
        raise ValueError("found a zero byte, which no value can have")
