"""What the native engine's answer lacks, or says otherwise than the real one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

CLOSE = 2e-3
"""Between numbers that are computed, absolute or relative."""
# Of the moment, or of the build.
VARYING = frozenset(
    ("created", "created_at", "completed_at", "modified_at", "id", "item_id", "system_fingerprint")
)
TIMES = ("_ms", "_per_second")


def assert_same(native: Any, real: Any, *, apart_from: Sequence[str] = ()) -> None:
    """The answers say the same. What only the native engine tells doesn't count.

    `apart_from`: members that differ on purpose, as `choices[].text`.
    """
    lines = [line for place, line in _differences(native, real, "") if not _is_listed(place, apart_from)]
    assert not lines, "\n".join(lines)


def _is_listed(place: str, listed: Sequence[str]) -> bool:
    return any(place == name or place.startswith((f"{name}.", f"{name}[")) for name in listed)


def _differences(native: Any, real: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(real, dict) and isinstance(native, dict):
        for name, value in real.items():
            inner = f"{place}.{name}" if place else name
            if name not in native:
                yield inner, f"{inner}: missing, {_short(value)}"
            elif not _varies(name, native[name], value):
                yield from _differences(native[name], value, inner)
    elif isinstance(real, list) and isinstance(native, list):
        if len(real) != len(native):
            yield (
                place,
                f"{place}: {len(native)} entries, not {len(real)}: {_short(native)}, not {_short(real)}",
            )
        for ours, theirs in zip(native, real, strict=False):
            yield from _differences(ours, theirs, f"{place}[]")
    elif not _is_same(native, real):
        yield place, f"{place}: {_short(native)}, not {_short(real)}"


def _varies(name: str, native: Any, real: Any) -> bool:
    """Whether only the kind of a member can be compared, and is the same."""
    is_number = isinstance(real, int | float) or real is None
    return (name in VARYING or (is_number and name.endswith(TIMES))) and _kind(native) == _kind(real)


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) or value is None else type(value).__name__


def _is_same(native: Any, real: Any) -> bool:
    if isinstance(real, float) and isinstance(native, int | float):
        return math.isclose(native, real, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(native) is type(real) and bool(native == real)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
