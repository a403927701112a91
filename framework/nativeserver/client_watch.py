"""Notices that a client is gone while its request is worked on (12 §2.8). Used by nativeserver.driver."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed its connection: there is nobody to answer."""


class ClientWatch:
    """Listens for the end of a connection whose body was read. Has to be closed."""

    def __init__(self, receive: Receive) -> None:
        self._gone = asyncio.create_task(_until_gone(receive))

    async def race(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns or raises. ClientGone when the client goes first: the work is cancelled."""
        job = asyncio.create_task(work)
        try:
            await asyncio.wait({job, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if job.done():
                return job.result()
            raise ClientGone
        finally:
            if not job.done():
                job.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await job

    def close(self) -> None:
        """Listen no longer."""
        self._gone.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
