"""A wait that somebody may cut short, such as the one before a crashed engine is started again."""

from __future__ import annotations

import asyncio
import time


class Pause:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._cut = asyncio.Event()

    def cut(self) -> None:
        """End the wait that runs now, or will run next."""
        self._cut.set()

    def reset(self) -> None:
        """Whoever cut an earlier wait short did not mean this one."""
        self._cut.clear()

    async def until(self, at_s: float) -> None:
        """Wait until this moment of the monotonic clock, or until it is cut."""
        if (left_s := at_s - time.monotonic()) <= 0:
            return
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait({cut}, timeout=left_s)
        finally:
            cut.cancel()
