"""Work that would hold up the event loop is done beside it (12 §1.8)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 64 * 1024
"""Bytes or characters; less is done at once, since a thread costs more than it saves."""


def is_large(*values: Any) -> bool:
    """Whether the texts, members and entries of JSON values are more than LARGE; looks no further then."""
    waiting, size = list(values), 0
    while waiting and size <= LARGE:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            size += len(value)
            waiting += value.values()
        elif isinstance(value, list | tuple):
            size += len(value)
            waiting += value
    return size > LARGE


async def off_loop_if(beside: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns or raises; done in a thread when it is to be done beside the event loop."""
    if beside:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def thread_of_its_own(work: Callable[[], T]) -> asyncio.Future[T]:
    """What the work returns or raises. It never waits for other work, as in the pool of `off_loop_if`.

    Nobody waits for the thread at the end of the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(tell_it: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            tell_it(value)

    def run() -> None:
        outcome: tuple[Callable[[Any], None], Any]
        try:
            outcome = future.set_result, work()
        except Exception as error:  # noqa: BLE001  raised by whoever waits
            outcome = future.set_exception, error
        # Of a loop that has ended nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return future
