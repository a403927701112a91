"""So many per so much time: what a manifest allows a key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """So many per so many seconds."""

    count: int
    period_s: float
