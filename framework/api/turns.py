"""Turns at what takes a thread for long: reading, comparing and planning whole manifests.

Without them a few hundred requests at once, as a key held down sends them, would fill the threads that all
pages and the request log share. Whoever waits does so in order; who leaves loses the turn that was not begun.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.requests import ClientDisconnect, Request

from framework.api.errors import ApiError

# One long preview must not hold up what somebody else types.
AT_ONCE = 2
# Each may hold some megabytes of text.
MOST = 16
# So that one key, with a script or a slow line, leaves room for the others.
MOST_OF_ONE = 8
# How soon a place is free after its client has left.
LOOK_S = 0.25
COME_BACK = {"Retry-After": "2"}


class Turns:
    """All methods are called on one event loop."""

    def __init__(self, at_once: int = AT_ONCE, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most = most
        self._most_of_one = most_of_one
        self._held: Counter[str] = Counter()

    @contextmanager
    def place(self, who: str) -> Iterator[None]:
        """Room for one request of this name and its body. Raises ApiError 503 where there is none."""
        if self._held.total() >= self._most or self._held[who] >= self._most_of_one:
            message = "Too many texts of the manifest are being looked at; try again in a moment."
            raise ApiError(503, "too_busy", message, headers=COME_BACK)
        self._held[who] += 1
        try:
            yield
        finally:
            self._held[who] -= 1
            self._held += Counter()

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """The work itself, for who has a place and has sent its body. Raises ClientDisconnect."""
        await self._wait(request)
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def alone(self, request: Request, who: str) -> AsyncIterator[None]:
        """Place and turn of a request without a body. Raises ApiError 503 and ClientDisconnect."""
        with self.place(who):
            async with self.turn(request):
                yield

    async def _wait(self, request: Request) -> None:
        waiting = asyncio.create_task(self._free.acquire())
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=LOOK_S)
                if not waiting.done() and await request.is_disconnected():
                    raise ClientDisconnect
        except BaseException:
            if not waiting.cancel():
                self._free.release()
            raise
