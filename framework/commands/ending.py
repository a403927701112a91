"""A command that is told to end does so as with Ctrl-C: what it has started goes with it.

Used by commands that start engines for a moment. Without this, SIGTERM would end only the command and the
engine itself, and leave what the engine has started.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`; SIGTERM cancels the work and waits for it, and then raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGTERM, before)
