"""Rows of requests: read once for all who look at the same list."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from framework.dashboard.request_feed import RequestFeeds
from framework.telemetry.events import utc_now
from framework.telemetry.request_log import EVERY_REQUEST, RequestFilter, RequestLog
from framework.telemetry.tables import KeptRequest
from tests.telemetry.samples import Life, life, record


class CountingLog(RequestLog):
    """A request log that counts what is read of it."""

    reads = 0

    async def recent(self, *args: Any, **options: Any) -> list[KeptRequest]:
        self.reads += 1
        return await super().recent(*args, **options)


def log_of(one: Life) -> CountingLog:
    log = CountingLog(one.store)
    log.adopt("metadata")
    return log


async def test_fifty_readers_of_a_list_read_it_once(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = log_of(one)
        log.keep(record(1))
        one.until(lambda: one.store.find_requests(limit=1), "the request")
        feeds = RequestFeeds(log, clock=lambda: 100.0)
        readers = [feeds.of(RequestFilter(model=None)) for _ in range(50)]
        await asyncio.gather(*(feed.begin() for feed in readers))
        assert [len(feed.rows) for feed in readers] == [1] * 50
        before = log.reads
        log.keep(record(2))
        one.until(lambda: len(one.store.find_requests(limit=2)) == 2, "the second request")
        await asyncio.gather(*(feed.refresh() for feed in readers))
        assert [len(feed.rows) for feed in readers] == [2] * 50
        assert log.reads == before + 1


async def test_other_filters_have_feeds_of_their_own_and_none_stays_without_a_reader(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        feeds = RequestFeeds(log_of(one))
        since = RequestFilter(since_at=utc_now() - timedelta(seconds=5))
        every, other = feeds.of(EVERY_REQUEST), feeds.of(since)
        assert feeds.of(since) is other is not every
        del every, other
        assert len(feeds._feeds) == 0
