"""Requests that wait for a model to be ready (08 §2.4, §2.10): how many, since when, whose turn it is.

Belongs to one supervisor and one event loop; the count over all models is kept in the shop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from framework.runtime.shop import Shop


@dataclass(frozen=True)
class Wait:
    """What a request waits for, and how long it may: a first load, or the end of a swap."""

    kind: Literal["load", "swap"]
    limit_s: float


@dataclass(eq=False)
class Waiter:
    """A request that waits for the model."""

    kind: Literal["load", "swap"]
    key: str | None = None
    """Whose request it is: the name of an access key."""
    since_s: float = field(default_factory=time.monotonic)
    phase_since_s: float = field(default_factory=time.monotonic)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def left_s(self, wait: Wait) -> float:
        """Seconds it may still wait; each kind of wait has its own time."""
        if wait.kind != self.kind:
            self.kind, self.phase_since_s = wait.kind, time.monotonic()
        return self.phase_since_s + wait.limit_s - time.monotonic()

    async def woken(self, timeout_s: float) -> None:
        """Return when something about the model changed, or when the time is over."""
        self.wake.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wake.wait(), timeout_s)


class WaitingRoom:
    """Everybody who waits for one model."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._waiters: list[Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def oldest_s(self) -> float | None:
        """How long the one who came first has waited; None when nobody waits."""
        return max((time.monotonic() - waiter.since_s for waiter in self._waiters), default=None)

    def is_full(self, limit: int) -> bool:
        """Whether the model's own limit or the one over all models is reached."""
        return len(self) >= limit or self._shop.waiting >= self._shop.server.max_waiting

    def enter(self, wait: Wait, key: str | None) -> Waiter:
        """A place; given back by `leave`."""
        waiter = Waiter(wait.kind, key)
        self._waiters.append(waiter)
        self._shop.waiting += 1
        self._shop.events.touch()
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Give the place back."""
        self._waiters.remove(waiter)
        self._shop.waiting -= 1
        self._shop.events.touch()

    def wake_all(self) -> None:
        """Something changed: everybody looks again, in turn, for engines serve in the order of leases."""
        for waiter in in_turn(self._waiters):
            waiter.wake.set()


def in_turn(waiters: Sequence[Waiter]) -> list[Waiter]:
    """Keys take turns, within a key first come first served. `waiters` are in the order of their coming."""
    served: Counter[str | None] = Counter()
    turns = []
    for place, waiter in enumerate(waiters):
        turns.append((served[waiter.key], place, waiter))
        served[waiter.key] += 1
    return [waiter for _, _, waiter in sorted(turns, key=lambda turn: turn[:2])]
