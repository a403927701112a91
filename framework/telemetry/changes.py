"""One signal for "something a person could see has changed". Pages wait on it instead of polling."""

from __future__ import annotations

import asyncio


class Changes:
    """A counter that can be awaited. Belongs to one event loop; `mark` is called on that loop."""

    def __init__(self) -> None:
        self.version = 0
        self.closed = False
        """Nothing will change any more; whoever follows ends."""
        self._waiters: set[asyncio.Future[None]] = set()

    def mark(self) -> None:
        """Say that something changed; wakes everybody who waits."""
        self.version += 1
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Say that nothing will change any more; wakes everybody who waits, for good."""
        self.closed = True
        self.mark()

    async def wait(self, seen: int) -> int:
        """Return the current version as soon as it differs from `seen`, or at once when closed."""
        while self.version == seen and not self.closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        return self.version
