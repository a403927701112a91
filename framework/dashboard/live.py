"""One stream of server-sent events per page: parts of it, as they change (01 §3).

A stream waits for the change signal, compares page values with what it has sent, and sends the difference
as HTML that htmx puts in place by id. It sends at most four times a second, a comment when nothing happens,
and ends with its client, its session or its model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from framework.api.auth import set_session_cookie, visit
from framework.api.errors import ApiError
from framework.api.sessions import Session
from framework.api.streams import frame
from framework.dashboard.answers import EVENT_STREAM, viewer_of
from framework.dashboard.desk import Desk
from framework.dashboard.live_source import LiveSource
from framework.dashboard.live_sources import source_of
from framework.dashboard.pages.shell import Viewer
from framework.dashboard.updates import Fragment, Sent
from framework.runtime.logs import LogBuffer, LogLine
from framework.telemetry.changes import Changes

# 01 §3: at most 4 updates a second.
INTERVAL_S = 0.25
# Proxies drop what is silent for about a minute.
HEARTBEAT_S = 15.0
# Progress and countdowns are read on demand, so nobody says that they moved: look often enough to see it.
LOOK_S = 1.0
# How soon a browser comes back after a lost connection, in milliseconds.
RETRY_MS = 1000
# A screen reader is told the first few changes; a fleet that starts at once would never stop talking.
ANNOUNCED = 3
COME_BACK = {"Retry-After": "5"}


@dataclass(frozen=True)
class Pace:
    """Times of a stream in seconds."""

    interval_s: float = INTERVAL_S
    heartbeat_s: float = HEARTBEAT_S
    look_s: float = LOOK_S


async def live(desk: Desk, request: Request) -> Response:
    """The stream of the page that `?page=` names."""
    seen = visit(request, desk.services)
    if seen.new_cookie is not None:
        # The page outlived its session, as after a restart: it gets a new one and comes back at once.
        response = Response(f"retry: {RETRY_MS}\n\n", media_type=EVENT_STREAM)
        set_session_cookie(response, request, desk.services, seen.new_cookie)
        return response
    _require_room(desk, seen.session)
    source = await source_of(desk, request)
    if source.for_operators and seen.caller.role != "operate":
        raise ApiError(403, "role_not_allowed", "Only operators see requests.")
    if request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    # Again: others may have come while the page was looked up.
    _require_room(desk, seen.session)
    return Counted(desk, seen.session, updates(desk, request, source))


def _require_room(desk: Desk, session: Session) -> None:
    if desk.streams.is_full(session):
        raise ApiError(503, "too_many_pages", "Too many pages are open; close some.", headers=COME_BACK)


class Counted(StreamingResponse):
    """A stream that counts as open from the moment at which there was room for it."""

    def __init__(self, desk: Desk, session: Session, text: AsyncIterator[str]) -> None:
        super().__init__(text, media_type=EVENT_STREAM, headers={"x-accel-buffering": "no"})
        self._streams, self._session = desk.streams, session
        self._streams.opened(session)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it to its end."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.closed(self._session)


async def updates(
    desk: Desk, request: Request, source: LiveSource, pace: Pace = Pace()
) -> AsyncIterator[str]:
    """The text of the stream. What changed since the page was rendered comes first."""
    with desk.shared.reader(source):
        sent, shown_to = Sent(), _viewer(desk, request)
        moment = desk.shared.look(source, holds_s=pace.interval_s / 2)
        states = moment.states
        if source.is_current(request.query_params.get("have", "")):
            sent.remember(moment.fragments)
        yield f"retry: {RETRY_MS}\n\n"
        while not desk.services.changes.closed:
            wake = _Wake(desk.services.changes, source.log())
            viewer = _viewer(desk, request)
            if viewer is None or (source.for_operators and not viewer.may_operate):
                return
            if viewer != shown_to:
                # Another role sees other buttons: everything is sent anew.
                sent, shown_to = Sent(), viewer
            await source.refresh()
            moment = desk.shared.look(source, holds_s=pace.interval_s / 2)
            found = [
                frame(desk.shared.html(moment, update, viewer)) for update in sent.changes(moment.fragments)
            ]
            found += _announcement(desk, viewer, states, moment.states)
            states = moment.states
            if found:
                yield "".join(found)
            look_s = pace.look_s if moment.is_moving else pace.heartbeat_s
            if not await wake.wait(min(look_s, source.due_s() or look_s)):
                yield ": nothing new\n\n"
            await _next_beat(pace.interval_s)


async def _next_beat(interval_s: float) -> None:
    """Wait until all streams look together, so that they share what they find: four times a second."""
    if interval_s:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(interval_s - now % interval_s)


class _Wake:
    """What a stream waits for, as it stands before it looks: a later change is never missed."""

    def __init__(self, changes: Changes, log: LogBuffer | None) -> None:
        self._changes = changes
        self._version = changes.version
        self._log = log
        self._newest = log.newest if log is not None else 0

    async def wait(self, timeout_s: float) -> bool:
        """True when something has changed or a line was written, False when time is over."""
        waiting: list[asyncio.Task[object]] = [asyncio.create_task(self._changes.wait(self._version))]
        if self._log is not None:
            waiting.append(asyncio.create_task(self._line(self._log)))
        try:
            done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            for task in waiting:
                task.cancel()

    async def _line(self, log: LogBuffer) -> LogLine | None:
        """The next line, None when the manager ends."""
        async with aclosing(log.follow(self._newest)) as lines:
            return await anext(lines, None)


def _viewer(desk: Desk, request: Request) -> Viewer | None:
    """Who looks, None when the session is over."""
    try:
        seen = visit(request, desk.services)
    except ApiError:
        return None
    return viewer_of(desk, seen) if seen.new_cookie is None else None


def _announcement(desk: Desk, viewer: Viewer, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What a screen reader is told: changes of state only, never progress."""
    moved = [f"{name}: {label}" for name, label in now.items() if before.get(name, label) != label]
    if not moved:
        return []
    more = [f"and {len(moved) - ANNOUNCED} more"] if len(moved) > ANNOUNCED else []
    announced = Fragment("announce", "_announce.html", "text", ". ".join([*moved[:ANNOUNCED], *more]))
    return [frame(desk.templates.fragment(announced, viewer))]
