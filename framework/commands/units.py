"""Numbers for people: bytes, durations, moments. Programs get them unrounded from `--json`."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
STEP = 1024


def bytes_text(size_bytes: int) -> str:
    """`1.5 GiB`."""
    amount, unit = float(size_bytes), 0
    while amount >= STEP and unit < len(BYTE_UNITS) - 1:
        amount, unit = amount / STEP, unit + 1
    return f"{amount:.1f} {BYTE_UNITS[unit]}" if unit else f"{size_bytes} B"


def duration_text(duration_s: float) -> str:
    """The two largest units: `42s`, `3m 5s`, `2h 10m`, `5d 1h`."""
    whole = max(0, int(duration_s))
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m {whole % MINUTE_S}s"
    if whole < DAY_S:
        return f"{whole // HOUR_S}h {whole % HOUR_S // MINUTE_S}m"
    return f"{whole // DAY_S}d {whole % DAY_S // HOUR_S}h"


def since_text(moment: str, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 moment was."""
    then = datetime.fromisoformat(moment)
    return duration_text(((now or datetime.now(UTC)) - then).total_seconds())


def local_time(moment: str) -> str:
    """An RFC 3339 moment as local wall-clock time."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")
