"""The request log: finished requests, as much of them as `[server] request_log` says (01 §1.1, 13 §9).

Fed by the proxy, read by the API. Numbers stay until newer ones push them out; texts are in the file only
while the manifest says `full`: any other mode erases them. Without a store it keeps nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from framework.telemetry.store import Store
from framework.telemetry.tables import KeptRequest
from framework.values.request_record import RequestLogMode, RequestRecord


@dataclass(frozen=True)
class RequestFilter:
    """Which requests are wanted; None takes all. `statuses` are the lowest and the highest one."""

    model: str | None = None
    key: str | None = None
    statuses: tuple[int, int] | None = None
    since_at: datetime | None = None
    took_s: int | None = None
    """Seconds that they took at least, from their arrival to their end."""

    def takes(self, record: RequestRecord) -> bool:
        """Whether one passes, as it would in the store."""
        low, high = self.statuses or (0, record.status)
        return (
            self.model in (None, record.model)
            and self.key in (None, record.key)
            and low <= record.status <= high
            and (self.since_at is None or record.at >= self.since_at)
            and (self.took_s is None or record.total_s >= self.took_s)
        )


EVERY_REQUEST = RequestFilter()


class RequestLog:
    """All methods are called on one event loop."""

    def __init__(self, store: Store | None = None) -> None:
        self.mode: RequestLogMode = "off"
        self.kept = 0
        """Requests that were given to the store since the start; it writes them a moment later."""
        self._store = store
        self._reading = asyncio.Lock()

    def adopt(self, mode: RequestLogMode) -> None:
        """The mode of the manifest in force; acts on requests that end from now on."""
        self.mode = mode
        if mode != "full" and self._store is not None:
            self._store.erase_texts()

    def keep(self, record: RequestRecord) -> None:
        """A request has ended."""
        if self.mode == "off" or self._store is None:
            return
        self.kept += 1
        self._store.keep_request(record if self.mode == "full" else replace(record, texts=None))

    async def recent(
        self,
        wanted: RequestFilter = EVERY_REQUEST,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[KeptRequest]:
        """The newest `limit` requests between two places, oldest first, without their texts."""
        if self._store is None:
            return []
        async with self._reading:
            return await asyncio.to_thread(
                self._store.find_requests, **vars(wanted), after=after, before=before, limit=limit
            )

    async def find(self, request_id: str) -> KeptRequest | None:
        """One request by its id, with its texts; None when it is not, or not any more, in the log."""
        if self._store is None:
            return None
        async with self._reading:
            found = await asyncio.to_thread(self._store.find_requests, request_id=request_id)
        return found[0] if found else None
