"""How many requests a process served at once, as a mean over the time of one of them (05 §11.7)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """A moment, to take means from."""

    at_s: float
    request_s: float


class BusyTime:
    """Requests under way, summed over time. All moments are of one clock that never goes back."""

    def __init__(self) -> None:
        self._count = 0
        self._at_s = 0.0
        self._request_s = 0.0

    def begin(self, now_s: float) -> Mark:
        """One more from now on."""
        self._advance(now_s)
        self._count += 1
        return Mark(now_s, self._request_s)

    def end(self, since: Mark, now_s: float) -> float:
        """One less from now on; the mean number since it began, itself included."""
        self._advance(now_s)
        self._count -= 1
        seconds = now_s - since.at_s
        return (self._request_s - since.request_s) / seconds if seconds > 0 else self._count + 1.0

    def _advance(self, now_s: float) -> None:
        self._request_s += self._count * (now_s - self._at_s)
        self._at_s = now_s
