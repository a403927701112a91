"""So many per so much time: what a manifest allows a key."""

from __future__ import annotations

from dataclasses import dataclass

UNITS = {1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "day"}


@dataclass(frozen=True)
class Rate:
    """So many per so many seconds."""

    count: int
    period_s: float

    def __str__(self) -> str:
        """`400/day`, as it is written."""
        return f"{self.count}/{UNITS.get(self.period_s, f'{self.period_s:g} s')}"
