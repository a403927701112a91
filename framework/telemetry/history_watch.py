"""Keeps the history fed: with the last hour of the request log at first, then with a look every few seconds.

Started by app. Looks at snapshots that pages take too; no engine is asked anything (cases MD-01).
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Protocol

from framework.telemetry.changes import Changes
from framework.telemetry.events import utc_now
from framework.telemetry.history import History
from framework.telemetry.request_log import RequestFilter, RequestLog
from framework.values.history import STEP_S, STEPS
from framework.values.instance import ModelView
from framework.values.pool import PoolView

LOOK_S = 5.0
HOUR = timedelta(seconds=STEP_S * STEPS)
# What is older than these is not shown: to read it would hold up the start.
MOST_READ = 5000
AT_ONCE = 500


class Looks(Protocol):
    """The fleet as a history sees it."""

    def views(self) -> tuple[ModelView, ...]:
        """All models."""

    def pools(self) -> tuple[PoolView, ...]:
        """All pools."""


class Feeds(Protocol):
    """What it is fed with besides, and whom it tells."""

    @property
    def history(self) -> History:
        """What is fed."""

    @property
    def request_log(self) -> RequestLog:
        """Requests of before."""

    @property
    def changes(self) -> Changes:
        """The signal that something moved."""


async def watch(fleet: Looks, feeds: Feeds) -> None:
    """Feed the history until cancelled; whoever shows it is told when it moved."""
    history = feeds.history
    await recall(history, feeds.request_log)
    while True:
        if history.looked(fleet.views(), fleet.pools()):
            feeds.changes.mark()
        await asyncio.sleep(LOOK_S)


async def recall(history: History, request_log: RequestLog) -> None:
    """Count in what ended before now. Before the oldest request that was read nothing is known."""
    now = utc_now()
    kept = await request_log.recent(RequestFilter(since_at=now - HOUR), limit=MOST_READ)
    for number, one in enumerate(kept, 1):
        ended = one.record.at + timedelta(seconds=one.record.total_s)
        if ended <= now:
            history.request_ended(one.record, ago_s=(utc_now() - ended).total_seconds())
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    if kept:
        history.known_for((now - kept[0].record.at).total_seconds())
