"""The devices as last listed. Listing starts an engine binary, so readers share one sample (04 §2.5).

Made by `inquiry`; the API, the plan and the dashboard read it. A sample has a time and ages; the pools of its
devices do not, they are those of the manifest in force, and what is free of host memory is looked up anew:
models come and go between two lists. Decides nothing about when to list again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.hardware.devices import host_memory
from framework.hardware.membership import in_pools
from framework.reconcile.current import CurrentManifest
from framework.telemetry.events import utc_now
from framework.values.device import HOST_NAME, Device
from framework.values.reason import Reason

log = logging.getLogger(__name__)

# Pages that are drawn several times a second show the same number for so long.
HOST_HOLDS_S = 1.0


class DeviceSample:
    """The last answer, and at most one question on its way. Belongs to one event loop."""

    def __init__(
        self,
        current: CurrentManifest,
        list_devices: Callable[[], Awaitable[DevicesAnswer]],
        *,
        now: Callable[[], datetime] = utc_now,
        host: Callable[[], Device] = host_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._current = current
        self._list_devices = list_devices
        self._now = now
        self._read_host = host
        self._clock = clock
        self._host: tuple[float, Device] | None = None
        self._listing: asyncio.Task[None] | None = None
        self._answer = DevicesAnswer()

    def known(self) -> DevicesAnswer:
        """The sample as it is; `sampled_at` is None before the first one. Starts nothing."""
        pools = self._current.manifest.pools.values()
        devices = tuple(self._host_now(d) if d.name == HOST_NAME else d for d in self._answer.devices)
        return replace(self._answer, devices=in_pools(devices, pools))

    def _host_now(self, listed: Device) -> Device:
        now = self._clock()
        if self._host is None or now - self._host[0] >= HOST_HOLDS_S:
            self._host = (now, self._read_host())
        return replace(listed, free_bytes=self._host[1].free_bytes)

    async def take(self) -> DevicesAnswer:
        """A new sample; callers that come together share one, also when one of them is cancelled.

        Never raises for what goes wrong with listing: a reason says so.
        """
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list(), name="list devices")
        await asyncio.shield(self._listing)
        return self.known()

    async def _list(self) -> None:
        try:
            answer = await self._list_devices()
        except Exception:
            # Whatever is wrong with listing devices must not take a page or the start with it.
            log.exception("listing the devices failed")
            answer = DevicesAnswer(reasons=(NOT_LISTED,))
        self._answer = replace(answer, sampled_at=self._now())


NOT_LISTED = Reason(
    "devices_unknown",
    "The devices could not be listed.",
    "Run `paddock doctor`; the log of Paddock has the details.",
    "warning",
)
