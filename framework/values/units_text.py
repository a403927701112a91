"""Numbers, durations and moments as people read them, on pages and on the terminal. Pure.

Everything is shown with its unit, and what is not known is shown as a dash, never as a guess. Programs get
the numbers unrounded from the JSON API.
"""

from __future__ import annotations

from datetime import datetime, tzinfo

UNKNOWN = "\u2013"
KIB = 1024
SIZE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
# Below this many seconds a tenth of a second still says something.
FINE_LIMIT_S = 10
# A unit is kept until the number has this many digits before the point, as people read file sizes.
FINE_SIZE = 10


def size(count_bytes: int | None) -> str:
    """`512 B`, `1.5 KiB`, `98 MiB`: binary units, at most one decimal."""
    if count_bytes is None:
        return UNKNOWN
    if abs(count_bytes) < KIB:
        return f"{count_bytes} B"
    step = next((n for n in range(1, len(SIZE_UNITS)) if abs(count_bytes) < KIB ** (n + 1)), len(SIZE_UNITS))
    value = count_bytes / KIB**step
    digits = 1 if abs(value) < FINE_SIZE and not value.is_integer() else 0
    return f"{value:.{digits}f} {SIZE_UNITS[step - 1]}"


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`: the two largest units."""
    if seconds is None:
        return UNKNOWN
    if seconds < FINE_LIMIT_S:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for unit, unit_name, part, part_name in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {unit_name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def count(number: int | None) -> str:
    """`4,096`."""
    return UNKNOWN if number is None else f"{number:,}"


def tokens(number: int | None) -> str:
    """`4,096 tokens`, `1 token`."""
    return UNKNOWN if number is None else counted(number, "token")


def counted(number: int, noun: str) -> str:
    """`3 requests`, `1 request`: a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def read_whole_number(text: str, low: int, high: int) -> int | None:
    """The number that a person wrote, if it is a whole one from `low`, at least 0, to `high`; else None."""
    # isdecimal also takes other scripts' digits; int reads them too, but nobody means them.
    if text.isascii() and text.isdecimal() and len(text) <= len(str(high)) and low <= int(text) <= high:
        return int(text)
    return None


def whole_number_text(low: int, high: int, unit: str = "") -> str:
    """`a whole number from 1 to 16,777,216 tokens`: what a setting takes."""
    return f"a whole number from {low:,} to {high:,} {unit}".rstrip()


def rate(tokens_per_s: float | None) -> str:
    """`42.1 tokens/s`; a dash where the engine gave none."""
    return UNKNOWN if tokens_per_s is None else f"{tokens_per_s:,.1f} tokens/s"


def percent(fraction: float | None) -> str:
    """`42 %` of a fraction between 0 and 1."""
    return UNKNOWN if fraction is None else f"{fraction * 100:.0f} %"


def stamp(at: datetime, zone: tzinfo | None = None) -> str:
    """`29 Nov 14:02:11` in `zone`, by default the time zone of this machine."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %H:%M:%S}"
