"""The rows of a list of requests while somebody looks at it: read once for all pages with the same filter."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

from framework.dashboard.pages.requests import PAGE_ROWS
from framework.telemetry.request_log import RequestFilter, RequestLog
from framework.telemetry.tables import KeptRequest

# The store writes what came together, within a fraction of this.
SETTLE_S = 2.0
# Pages look together, four times a second; the first of them reads.
READ_AGAIN_S = 0.2
MOST_NEW = 1000


class RequestFeed:
    """The newest rows that pass a filter; `refresh` brings those that were written since."""

    def __init__(
        self, log: RequestLog, wanted: RequestFilter, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._wanted = wanted
        self._clock = clock
        self._rows: deque[KeptRequest] = deque(maxlen=PAGE_ROWS)
        self._newest: int | None = None
        self._seen = -1
        self._until_s = self._read_s = -SETTLE_S
        self._reading = asyncio.Lock()

    @property
    def rows(self) -> tuple[KeptRequest, ...]:
        """Those that pass, oldest first."""
        return tuple(self._rows)

    @property
    def is_settling(self) -> bool:
        """Whether something ended that may not be written yet."""
        return self._clock() < self._until_s

    async def begin(self) -> None:
        """Read the page, unless somebody looks at it already."""
        async with self._reading:
            if self._newest is not None:
                return
            newest = await self._log.recent(limit=1)
            self._newest = newest[-1].seq if newest else 0
            self._rows.extend(await self._log.recent(self._wanted, before=self._newest + 1, limit=PAGE_ROWS))

    async def refresh(self) -> None:
        """Read what is new, if anything may be. REQUIRES: begun."""
        async with self._reading:
            if self._log.kept != self._seen:
                self._seen, self._until_s = self._log.kept, self._clock() + SETTLE_S
            elif not self.is_settling or self._clock() - self._read_s < READ_AGAIN_S:
                return
            fresh = await self._log.recent(after=self._newest, limit=MOST_NEW)
            self._read_s = self._clock()
            if fresh:
                self._newest = fresh[-1].seq
                self._rows.extend(one for one in fresh if self._wanted.takes(one.record))


class RequestFeeds:
    """The feeds that somebody reads; one that nobody has any more is forgotten by itself."""

    def __init__(self, log: RequestLog, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._feeds: WeakValueDictionary[RequestFilter, RequestFeed] = WeakValueDictionary()

    def of(self, wanted: RequestFilter) -> RequestFeed:
        """The feed of a filter, perhaps with other readers."""
        feed = self._feeds.get(wanted)
        if feed is None:
            feed = self._feeds[wanted] = RequestFeed(self._log, wanted, clock=self._clock)
        return feed
