"""When a crashed or failed instance is started again, and when not any more (07 §9.4-9.6). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.values.request import RestartPolicy

# 07 §9.4: the first restart is immediate, since most crashes happen once; then the wait doubles.
DELAYS_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# 07 §9.6: a waiting request may cut short this many waits of a window, or clients would drive a loop.
EARLY_RESTARTS = 2


@dataclass
class CrashHistory:
    """Crashes of one replica, by a monotonic clock in seconds."""

    crashes_at_s: list[float] = field(default_factory=list)

    def crashed(self, now_s: float, ready_s: float, policy: RestartPolicy) -> float | None:
        """Note a crash after `ready_s` of readiness; the delay before the next start, None to give up."""
        if ready_s >= policy.stable_after_s:
            self.crashes_at_s.clear()
        self.crashes_at_s = [at for at in self.crashes_at_s if now_s - at < policy.window_s]
        self.crashes_at_s.append(now_s)
        if self.count > policy.max_crashes:
            return None
        return self.delay_s(policy)

    @property
    def count(self) -> int:
        """Crashes inside the window, as of the last one."""
        return len(self.crashes_at_s)

    def delay_s(self, policy: RestartPolicy) -> float:
        """The wait that belongs to the crashes so far."""
        index = self.count - 1
        planned = DELAYS_S[index] if index < len(DELAYS_S) else policy.backoff_max_s
        return min(planned, policy.backoff_max_s)

    @property
    def may_start_early(self) -> bool:
        """Whether a waiting request may end the wait now."""
        return self.count <= EARLY_RESTARTS

    def clear(self) -> None:
        """Forget everything: the user asked for a fresh start."""
        self.crashes_at_s.clear()
