"""When to list the devices again: that starts an engine binary, so looking at a page must not always do it.

Called by the overview. A page load asks for a new list when the last one is old; a live page asks only when
another set of instances runs, for that is when memory moves. Keeps no list of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.telemetry.changes import Changes
from framework.telemetry.events import utc_now

# Reloading a page again and again must not keep a CPU busy with listing devices.
FRESH_FOR_S = 10.0


class DeviceWatch:
    """Asks for lists, at most one at a time. Belongs to one event loop."""

    def __init__(
        self,
        list_devices: Callable[[], Awaitable[DevicesAnswer]],
        known: Callable[[], DevicesAnswer],
        changes: Changes,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._list_devices = list_devices
        self._known = known
        self._changes = changes
        self._now = now
        self._asking: asyncio.Task[None] | None = None
        self._running: frozenset[str] | None = None

    def look(self, running: frozenset[str], *, fresh: bool = False) -> DevicesAnswer:
        """What is known now. Starts a new list when another set of instances runs, or `fresh` is due."""
        known = self._known()
        moved = self._running not in (None, running)
        due = moved or known.sampled_at is None or (fresh and self._age_s(known.sampled_at) > FRESH_FOR_S)
        if self._asking is None or self._asking.done():
            self._running = running
            if due:
                self._asking = asyncio.get_running_loop().create_task(self._ask())
        return known

    def _age_s(self, sampled_at: datetime) -> float:
        return (self._now() - sampled_at).total_seconds()

    async def _ask(self) -> None:
        await self._list_devices()
        self._changes.mark()
