"""Long texts are tokenised a few at a time, the shortest first, and within bounds.

Tokenising can't be broken off, and texts without spaces take minutes for some MiB: without bounds a few
clients that have long gone would keep all waiting that is done beside the event loop (12 §1.8). Made by
bridge, whose event loop it belongs to; used by prompt_input and tokenizing.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from starlette.types import Receive

from framework.nativeserver.client_watch import ClientWatch
from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import thread_of_its_own

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 8 * 1024
"""Characters: a few milliseconds, or 50 for the worst texts, on the event loop."""
MOST_TEXT = 8 * 2**20
"""Characters of one request: two million tokens of prose. The tokeniser takes 80 bytes for each."""
MOST_WAITING = 64 * 2**20
"""Characters of all requests: each of them holds its text, and waits for those before it."""
MOST_RUNNING = 2
"""Texts at once. The decode thread needs the processor as well."""


class TextWork:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._n_running = 0
        self._n_chars = 0
        """Of what runs and what waits."""
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """A heap: size, order of arrival, and what tells the turn."""
        self._order = itertools.count()

    @property
    def is_busy(self) -> bool:
        """Whether a thread is at work, and uses the engine."""
        return self._n_running > 0

    async def run(
        self, receive: Receive, n_chars: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What the work returns or raises; it is done at once for a short text, else in a thread.

        Raises ApiError for a text that is too long, and when too much is waiting; ClientGone when the client
        that `receive` belongs to has left.
        """
        if n_chars <= AT_ONCE:
            return work(*args, **kwargs)
        if n_chars > MOST_TEXT:
            raise ApiError(
                "invalid_request",
                f"The texts have {n_chars} characters; one request may have {MOST_TEXT}. Send them in parts",
            )
        if self._n_chars + n_chars > MOST_WAITING:
            raise ApiError("unavailable", "Too many long texts are being tokenised at once; try again")
        watch = ClientWatch(receive)
        try:
            return await watch.race(self._in_turn(n_chars, lambda: work(*args, **kwargs)))
        finally:
            watch.close()

    async def _in_turn(self, n_chars: int, work: Callable[[], T]) -> T:
        self._n_chars += n_chars
        try:
            await self._turn(n_chars)
        except BaseException:
            self._n_chars -= n_chars
            raise
        job = thread_of_its_own(work)
        # Whoever waits may go; the thread keeps its place until it is through.
        job.add_done_callback(lambda ended: self._end(n_chars, ended))
        return await asyncio.shield(job)

    async def _turn(self, n_chars: int) -> None:
        if self._n_running < MOST_RUNNING:
            self._n_running += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (n_chars, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._next()
            raise

    def _end(self, n_chars: int, job: asyncio.Future[Any]) -> None:
        self._n_chars -= n_chars
        if not job.cancelled():
            # Looked at, even if nobody waits for it any more.
            job.exception()
        self._next()

    def _next(self) -> None:
        """Gives the place of one that has ended to the shortest that waits."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._n_running -= 1
