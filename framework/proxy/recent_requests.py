"""When a key's last requests came, for rates of few requests, which an estimate would halve (08 §2.9). Pure.

A rate of one a second lets one through each second, whatever came before. Larger rates are estimated by
`sliding_window`, in two numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MOST = 1000


@dataclass(slots=True)
class RecentRequests:
    """The moments of one key's last requests, on the clock of the callers."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))

    def add(self, now: float) -> None:
        """A request was let in."""
        self.times.append(now)

    def wait_s(self, limit: int, period_s: float, now: float) -> float:
        """Seconds until one more may come; 0 when it may now. `limit` is at most `MOST`."""
        if limit <= 0:
            return period_s
        if len(self.times) < limit:
            return 0.0
        return max(0.0, self.times[-limit] + period_s - now)
