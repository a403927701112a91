"""How much was used in the last period, in two numbers (08 §2.9). Pure: times come in as numbers.

Windows of one period follow each other. What counts is this window, and of the one before it the share that
the last period still covers. That is exact where use is even, and never lets a key have twice its limit at
the border of two windows, as a plain count per window does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SlidingWindow:
    """Use of one key. `began_s` is on the clock of the callers; counts are requests or tokens."""

    period_s: float
    began_s: float
    count: int = 0
    before: int = 0

    def add(self, amount: int, now: float) -> None:
        """Something was used."""
        self._turn(now)
        self.count += amount

    def wait_s(self, limit: int, now: float) -> float:
        """Seconds until one more may be used; 0 when it may now. A limit of 0 is never met: a period."""
        self._turn(now)
        free, elapsed_s = limit - 1, max(0.0, now - self.began_s)
        if free < 0:
            return self.period_s
        if self.count > free:
            # Only the next window can do: there, what is counted now fades.
            return self.period_s - elapsed_s + self.period_s * (1 - free / self.count)
        if self.before == 0:
            return 0.0
        return max(0.0, self.period_s * (1 - (free - self.count) / self.before) - elapsed_s)

    def used(self, now: float) -> float:
        """What the last period holds."""
        self._turn(now)
        share = 1 - max(0.0, now - self.began_s) / self.period_s
        return self.count + self.before * share

    def _turn(self, now: float) -> None:
        """Begin the window that `now` is in."""
        passed = int((now - self.began_s) // self.period_s)
        if passed <= 0:
            return
        self.before = self.count if passed == 1 else 0
        self.count = 0
        self.began_s += passed * self.period_s
