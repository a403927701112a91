"""Moments of the API's answers for people: how long ago, and when by the clock of this machine."""

from __future__ import annotations

from datetime import UTC, datetime

from framework.values.units_text import duration


def since_text(moment: str, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 moment was, as `3 min 5 s`; a clock that runs ahead of ours counts as now."""
    then = datetime.fromisoformat(moment)
    return duration(max(0.0, ((now or datetime.now(UTC)) - then).total_seconds()))


def local_time(moment: str) -> str:
    """An RFC 3339 moment as local wall-clock time."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")
