"""The devices as last listed. Listing starts an engine binary, so looking at a page must not do it each time.

Called by the overview. A page load may ask for a fresh list; a live page asks only when another set of
instances runs, for that is when memory moves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.dashboard.pages.device_list import DeviceList, device_list_of
from framework.telemetry.changes import Changes
from framework.telemetry.events import utc_now
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# Reloading a page again and again must not keep a CPU busy with listing devices.
FRESH_FOR_S = 10.0


class DeviceSample:
    """The last answer, and at most one question on its way. Belongs to one event loop."""

    def __init__(
        self,
        list_devices: Callable[[], Awaitable[DevicesAnswer]],
        changes: Changes,
        *,
        now: Callable[[], datetime] = utc_now,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._list_devices = list_devices
        self._changes = changes
        self._now = now
        self._monotonic_s = monotonic_s
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = 0.0
        self._running: frozenset[str] | None = None
        self._shown = device_list_of(None, None)

    def look(self, running: frozenset[str], *, fresh: bool = False) -> DeviceList:
        """What is known now. Starts a new listing when another set of instances runs, or `fresh` is due."""
        due = self._running != running or (fresh and self._monotonic_s() - self._asked_s > FRESH_FOR_S)
        if due and (self._asking is None or self._asking.done()):
            self._running = running
            self._asked_s = self._monotonic_s()
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        return self._shown

    async def _ask(self) -> None:
        try:
            answer = await self._list_devices()
        except Exception:
            # Whatever is wrong with listing devices must not take the page with it.
            log.exception("listing the devices failed")
            answer = DevicesAnswer(reasons=(_UNKNOWN,))
        self._shown = device_list_of(answer, self._now())
        self._changes.mark()


_UNKNOWN = Reason(
    "devices_unknown",
    "The devices could not be listed.",
    "Run `paddock doctor`; the log of Paddock has the details.",
    "warning",
)
