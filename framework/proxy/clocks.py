"""The two clocks of a generation: first token and stall (08 §3.5-3.7). Pure: times come in as numbers.

The driver asks before each wait for the instance how long it may wait, and tells afterwards what came.
Waits for a slow client are not told and so do not count against the stall clock.
"""

from __future__ import annotations

from typing import Literal

# However late it is, what has arrived already is read: the waits after a limit get this much, all together.
SHORTEST_WAIT_S = 0.1

ClockCode = Literal["first_token_timeout", "stream_stalled"]


class GenerationClock:
    """Limits of one attempt, which starts to send at `now` (seconds of any monotonic clock)."""

    def __init__(self, now: float, *, first_token_s: float, stall_s: float) -> None:
        self._first_token_at = now + first_token_s
        self._stall_s = stall_s
        self._stall_left_s = stall_s
        self._waiting_since = now
        self._last_look_until: float | None = None
        self.opened = False

    @property
    def code(self) -> ClockCode:
        """What a wait that took too long means now."""
        return "stream_stalled" if self.opened else "first_token_timeout"

    def begin_wait(self, now: float) -> float:
        """Seconds that a wait which begins now may take; none are left when it is 0."""
        self._waiting_since = now
        left = self._stall_left_s if self.opened else self._first_token_at - now
        if left >= SHORTEST_WAIT_S:
            return left
        # Comments that come faster than that must not renew it for ever.
        if self._last_look_until is None:
            self._last_look_until = now + SHORTEST_WAIT_S
        return max(left, self._last_look_until - now, 0.0)

    def end_wait(self, now: float) -> None:
        """The wait is over. If it brought comments only, its time is gone from the stall clock."""
        if self.opened:
            self._stall_left_s -= now - self._waiting_since

    def saw_event(self, *, progress: bool) -> None:
        """A data event came. The first that is no progress opens the stream."""
        self.opened = self.opened or not progress
        if self.opened:
            self._stall_left_s = self._stall_s
            self._last_look_until = None
