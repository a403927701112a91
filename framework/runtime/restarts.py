"""When a crashed or failed instance is started again, and when not any more (07 §9.4-9.6). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.values.request import RestartPolicy

# 07 §9.4: the first restart is immediate, since most crashes happen once; then the wait doubles.
DELAYS_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# A download has waited between tries of its own (02 §10), and whoever serves it is spared a hail of requests.
FETCH_DELAYS_S = (5.0, 10.0, 20.0, 40.0)
# 07 §9.6: a waiting request may cut short this many waits of a window, or clients would drive a loop.
EARLY_RESTARTS = 2


@dataclass
class CrashHistory:
    """Crashes and failed starts of one replica, by a monotonic clock in seconds."""

    crashes_at_s: list[float] = field(default_factory=list)
    failed_starts: int = 0
    """In a row, of the kind that may pass by itself."""

    def crashed(self, now_s: float, ready_s: float, policy: RestartPolicy) -> float | None:
        """Note a crash after `ready_s` of readiness; the delay before the next start, None to give up."""
        if ready_s >= policy.stable_after_s:
            self.crashes_at_s.clear()
        self.crashes_at_s = [at for at in self.crashes_at_s if now_s - at < policy.window_s]
        self.crashes_at_s.append(now_s)
        if self.count > policy.max_crashes:
            return None
        return delay_s(self.count, policy)

    def start_failed(self, policy: RestartPolicy, *, fetching: bool) -> float:
        """Note a failed start; the delay before the next one. There is no limit (07 §9.5).

        `fetching`: it came no further than the download of its files.
        """
        self.failed_starts += 1
        return delay_s(self.failed_starts, policy, FETCH_DELAYS_S if fetching else DELAYS_S)

    def started(self) -> None:
        """A start succeeded."""
        self.failed_starts = 0

    @property
    def count(self) -> int:
        """Crashes inside the window, as of the last one."""
        return len(self.crashes_at_s)

    @property
    def may_start_early(self) -> bool:
        """Whether a waiting request may end the wait now."""
        return max(self.count, self.failed_starts) <= EARLY_RESTARTS

    def clear(self) -> None:
        """Forget everything: the user asked for a fresh start."""
        self.crashes_at_s.clear()
        self.failed_starts = 0


def delay_s(number: int, policy: RestartPolicy, delays_s: tuple[float, ...] = DELAYS_S) -> float:
    """The wait before the `number`-th restart, counted from 1."""
    planned = delays_s[number - 1] if number <= len(delays_s) else policy.backoff_max_s
    return min(planned, policy.backoff_max_s)
