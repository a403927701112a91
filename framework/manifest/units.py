"""Numbers with units as the manifest writes them: `64MiB`, `10m`, `120/min` (01 §2.2), and back to text.

Parsing raises `BadValue`; `value_types.py` makes types of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from framework.manifest.bad_value import BadValue
from framework.values.rate import Rate

SIZE_UNITS = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}
"""Unit of a size to bytes."""

DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Unit of a duration to seconds."""

PERIODS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
"""Unit of a rate to seconds."""

# Fifteen digits are exact in a float; nothing in a manifest needs more.
NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
AMOUNT = re.compile(rf"{NUMBER} ?([A-Za-z]+)")
RATE = re.compile(r"([0-9]{1,15}) ?/ ?([A-Za-z]+)")
BARE_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

SIZE_FORM = 'a number and one of KiB MiB GiB KB MB GB, as in "64MiB"'
DURATION_FORM = 'a number and one of ms s m h d, as in "10m"'
RATE_FORM = 'a whole number, / and one of s min h day, as in "120/min"'


def parse_size(value: Any) -> int:
    """Bytes of `"1.5GiB"`."""
    amount, unit_bytes = _amount(value, SIZE_UNITS, kind="a size", form=SIZE_FORM, likely_unit="MiB")
    return round(amount * unit_bytes)


def parse_duration(value: Any) -> float:
    """Seconds of `"90s"`."""
    amount, unit_s = _amount(value, DURATION_UNITS, kind="a duration", form=DURATION_FORM, likely_unit="s")
    return amount * unit_s


def parse_rate(value: Any) -> Rate:
    """`"120/min"` as a count and a period."""
    match = RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match.group(2) not in PERIODS:
        bare = _bare(value)
        raise BadValue(
            "bad_rate", f"a count per time: {RATE_FORM}", suggestion=f'"{bare}/min"' if bare else ""
        )
    return Rate(int(match.group(1)), PERIODS[match.group(2)])


def _amount(
    value: Any, units: Mapping[str, float], *, kind: str, form: str, likely_unit: str
) -> tuple[float, float]:
    bare = _bare(value)
    if bare:
        raise BadValue("unit_missing", f"{kind} with its unit: {form}", suggestion=f'"{bare}{likely_unit}"')
    match = AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise BadValue("bad_unit", f"{kind}: {form}")
    amount, unit = match.groups()
    if unit not in units:
        meant = [f'"{amount}{name}"' for name in units if name.lower() == unit.lower()]
        raise BadValue("bad_unit", f"{kind}: {form}", suggestion=meant[0] if meant else "")
    return float(amount), units[unit]


def _bare(value: Any) -> str:
    """The text of a number that lacks its unit, else empty."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        text = str(value) if abs(value) < 10**15 else ""
    else:
        text = value.strip() if isinstance(value, str) else ""
    return text if BARE_NUMBER.fullmatch(text) and not text.startswith("-") else ""


def size_text(size_bytes: int) -> str:
    """Bytes in the largest binary unit that gives a short number, as the manifest would write them."""
    for unit in ("GiB", "MiB", "KiB"):
        if size_bytes >= SIZE_UNITS[unit]:
            return f"{size_bytes / SIZE_UNITS[unit]:g}{unit}"
    return f"{size_bytes / SIZE_UNITS['KiB']:g}KiB"


def duration_text(duration_s: float) -> str:
    """Seconds in the largest unit that divides them, as the manifest would write them."""
    for unit in ("d", "h", "m", "s"):
        if duration_s >= DURATION_UNITS[unit] and duration_s % DURATION_UNITS[unit] == 0:
            return f"{duration_s / DURATION_UNITS[unit]:g}{unit}"
    return f"{duration_s:g}s" if duration_s >= 1 or duration_s == 0 else f"{duration_s * 1000:g}ms"
