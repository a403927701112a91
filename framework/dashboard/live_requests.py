"""Live updates of the pages of requests. The store is asked for what is new, and only while requests end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256

from starlette.requests import Request

from framework.api.request_query import read_filter
from framework.api.request_routes import is_of
from framework.dashboard.answers import shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.live_address import banner_now, tag_now
from framework.dashboard.live_source import LiveSource, no_log
from framework.dashboard.pages.request import (
    RequestBody,
    ended_body,
    gone_body,
    request_fragment,
    running_body,
)
from framework.dashboard.pages.requests import (
    parse_request_query,
    requests_fragments,
    requests_page,
)
from framework.dashboard.request_feed import SETTLE_S
from framework.dashboard.updates import Fragment
from framework.proxy.records import RequestView
from framework.telemetry.events import utc_now
from framework.telemetry.tables import KeptRequest

AGAIN_S = 0.5
AGE_S = 1.0


def requests_tag(desk: Desk, kept: Sequence[KeptRequest], views: Sequence[RequestView]) -> str:
    """What a list was rendered from."""
    running = sha256(" ".join(f"{view.id} {view.phase}" for view in views).encode()).hexdigest()[:8]
    return f"{tag_now(desk)}-{kept[-1].seq if kept else 0}-{running}"


async def requests_source(desk: Desk, request: Request) -> LiveSource:
    """The newest page of the list."""
    services = desk.services
    query = parse_request_query(request.query_params)
    wanted = read_filter(request.query_params, services, utc_now())
    feed = desk.feeds.of(wanted)
    await feed.begin()

    def running() -> tuple[RequestView, ...]:
        return tuple(view for view in services.requests.views() if is_of(view, wanted))

    def fragments() -> tuple[Fragment, ...]:
        shell = shell_of(desk, request, "", "requests")
        page = requests_page(shell, query, feed.rows, running(), utc_now(), services.request_log.mode)
        return (banner_now(desk), *requests_fragments(page))

    def due_s() -> float | None:
        return AGAIN_S if feed.is_settling else AGE_S if running() else None

    return LiveSource(
        fragments,
        services.fleet.views,
        no_log,
        lambda: requests_tag(desk, feed.rows, running()),
        ("requests", query, wanted),
        refresh=feed.refresh,
        due_s=due_s,
        for_operators=True,
    )


class RequestWatch:
    """One request as its open page sees it; `refresh` looks whether it was written after its end."""

    def __init__(self, desk: Desk, request_id: str) -> None:
        self._desk = desk
        self._id = request_id
        self._ended: RequestBody | None = None
        self._last: RequestBody | None = None
        self._gone_at_s: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will change any more."""
        return self._ended is not None

    def body(self) -> RequestBody | None:
        """What there is to show; None where nothing was known of it yet."""
        view = self._desk.services.requests.find(self._id)
        if self._ended is not None:
            self._last = self._ended
        elif view is not None:
            self._last = running_body(view, utc_now())
        # It ended a moment ago and is not written yet: what the page shows stays.
        return self._last

    async def refresh(self) -> None:
        """Read the end of it, once it is served no more."""
        services = self._desk.services
        if self.has_ended or services.requests.find(self._id) is not None:
            return
        if self._gone_at_s is None:
            self._gone_at_s = time.monotonic()
        kept = await services.request_log.find(self._id)
        if kept is not None:
            self._ended = ended_body(kept.record, services.request_log.mode)
        elif time.monotonic() - self._gone_at_s > SETTLE_S:
            self._ended = gone_body(self._id)


async def request_source(desk: Desk, request: Request) -> LiveSource:
    """One request, from being served to its end."""
    watch = RequestWatch(desk, request.query_params.get("id", ""))

    def fragments() -> tuple[Fragment, ...]:
        body = watch.body()
        return (banner_now(desk), *(() if body is None else (request_fragment(body),)))

    return LiveSource(
        fragments,
        desk.services.fleet.views,
        no_log,
        lambda: tag_now(desk),
        refresh=watch.refresh,
        due_s=lambda: None if watch.has_ended else AGAIN_S,
        for_operators=True,
    )
