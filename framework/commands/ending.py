"""A command that is told to end does so as with Ctrl-C: what it has started goes with it.

Used by commands that start engines for a moment. Without this, SIGTERM would end only the command and the
engine itself, and leave what the engine has started; and a second Ctrl-C would break off the cleaning up.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`; SIGTERM and SIGINT cancel the work and wait for it, and then KeyboardInterrupt is
    raised. Each further one cancels what it waits for at that moment."""
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        return asyncio.run(_cancelled_by_signals(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


async def _cancelled_by_signals(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    for number in SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    return await task
