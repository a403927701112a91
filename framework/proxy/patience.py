"""A time limit on one wait after another, for waits that come with every streamed chunk.

`asyncio.timeout` sets and cancels a timer each time it is entered, which costs more than most waits here. So
all waits of an event loop share one timer. It rings at the earliest deadline that was known when it was set,
looks who has waited too long by then, and is set for the earliest of those that still wait: as good as never
where waits are short and limits long.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from weakref import WeakKeyDictionary

# A timer that is so late tells of an event loop that was held up, not of whoever is waited for.
HELD_UP_S = 0.1


class Patience:
    """Limits for the waits of one task at a time; entered as often as needed.

    Used as `with patience.within(seconds): await something`: raises TimeoutError where the time passes first.
    A cancel from elsewhere passes through.
    """

    __slots__ = ("_bell", "_cancelling", "_loop", "_task", "deadline", "expired")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._bell = _bell_of(self._loop)
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.deadline = 0.0
        """Of the wait at hand, on the clock of the event loop."""
        self.expired = False
        """Whether the last wait took too long."""

    def within(self, seconds: float) -> Patience:
        """What to enter for a wait of at most so long from now."""
        self.deadline = self._loop.time() + seconds
        return self

    def __enter__(self) -> Patience:
        task = asyncio.current_task(self._loop)
        if task is None or self._task is not None:
            raise RuntimeError("one running task waits at a time")
        self._task, self._cancelling, self.expired = task, task.cancelling(), False
        self._bell.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        self._bell.waits.discard(self)
        if not self.expired or task is None:
            return
        if task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def expire(self) -> None:
        """The time is over: end the wait."""
        self.expired = True
        if self._task is not None:
            self._task.cancel()


class _Bell:
    """The timer that the waits of one event loop share."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        self.waits: set[Patience] = set()

    def add(self, wait: Patience) -> None:
        """Look after a wait until it is discarded."""
        self.waits.add(wait)
        if self._timer is None or wait.deadline < self._rings_at:
            self._set(wait.deadline)

    def _set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        if now - self._rings_at > HELD_UP_S:
            # Nobody could end a wait meanwhile, however much has arrived; it is looked at first.
            self._set(now + HELD_UP_S)
            return
        for wait in [wait for wait in self.waits if wait.deadline <= now]:
            self.waits.discard(wait)
            wait.expire()
        if self.waits:
            self._set(min(wait.deadline for wait in self.waits))


_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, _Bell] = WeakKeyDictionary()


def _bell_of(loop: asyncio.AbstractEventLoop) -> _Bell:
    bell = _bells.get(loop)
    if bell is None:
        bell = _bells[loop] = _Bell(loop)
    return bell
