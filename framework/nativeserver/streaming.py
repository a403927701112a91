"""A stream of server-sent events from the results of a submission (12 §4.4-4.9, 15 §5).

Made by nativeserver.driver once it is known that the request does not fail at once. What arrived in the same
turn of the event loop is sent together. A client that reads slowly holds back only itself: results are kept
for it up to a limit, then its request ends.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from framework.nativeserver.bridge import Submission, error_of
from framework.nativeserver.client_watch import ClientGone, ClientWatch
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event, Flavour
from framework.nativeserver.transport import to_json

log = logging.getLogger(__name__)

PING = b":\n\n"
DONE = b"data: [DONE]\n\n"
MAX_BACKLOG_BYTES = 16 * 1024 * 1024
"""Events that wait for one client; some 100 000 tokens."""
HEADERS = {
    # Proxies that collect an answer before they pass it on leave it alone.
    "x-accel-buffering": "no",
    "cache-control": "no-cache",
}


class SlowClient(Exception):
    """More events wait for a client than are kept."""


class _Ended(Exception):
    """An error event was the last one."""


def event_bytes(event: Event) -> bytes:
    """The event as it goes over the wire."""
    name = b"" if event.name is None else b"event: " + event.name.encode() + b"\n"
    return name + b"data: " + to_json(event.data) + b"\n\n"


class EventStream(Response):
    """Sends events until every task has ended, or the client is gone."""

    media_type = "text/event-stream"

    def __init__(
        self,
        submission: Submission,
        flavour: Flavour,
        watch: ClientWatch,
        first: Result | None,
        ping_interval_s: float | None,
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        # As llama-server writes it: the charset of event streams is fixed.
        self.headers["content-type"] = "text/event-stream"
        self._submission = submission
        self._flavour = flavour
        self._watch = watch
        self._first = first
        self._ping_interval_s = ping_interval_s
        self._running = len(submission.ids)
        self._backlog = bytearray()
        self._has_more = asyncio.Event()
        self._is_whole = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            await send(start)
            await self._watch.race(self._pump(send))
        except ClientGone:
            log.debug("the client of %s is gone", self._submission.ids)
        finally:
            self._submission.cancel()
            self._watch.close()

    async def _pump(self, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._collect())
                group.create_task(self._write(send))
        except* SlowClient:
            log.warning(
                "tasks %s end: their client left %d MiB of events unread",
                self._submission.ids,
                MAX_BACKLOG_BYTES // 1024**2,
            )
        except* OSError as broken:
            log.debug("the connection of %s broke: %s", self._submission.ids, broken)

    async def _collect(self) -> None:
        """Turns results into bytes for `_write`."""
        try:
            if self._first is None:
                self._put(PING)
            else:
                self._take(self._first)
            while self._running:
                result = await self._submission.next(self._ping_interval_s)
                if result is not None:
                    self._take(result)
                elif not self._submission.open:
                    self._fail(ApiError("unavailable", "The engine has stopped"))
                elif not self._backlog:
                    self._put(PING)
            self._put_events(self._flavour.closing())
            if self._flavour.sends_done:
                self._put(DONE)
        except _Ended:
            pass
        self._is_whole = True
        self._has_more.set()

    def _take(self, result: Result) -> None:
        if result.kind == "error":
            self._fail(error_of(result))
        if result.kind != "partial":
            self._running -= 1
        try:
            events = self._flavour.events(result)
        except ApiError as error:
            self._fail(error)
        except Exception:
            log.exception("a result of task %d has no shape", result.id)
            self._fail(ApiError("server", "Internal error; details are in the server's log"))
        else:
            self._put_events(events)

    def _fail(self, error: ApiError) -> None:
        self._put(event_bytes(self._flavour.error(error)))
        raise _Ended

    def _put_events(self, events: list[Event]) -> None:
        self._put(b"".join(map(event_bytes, events)))

    def _put(self, data: bytes) -> None:
        if len(self._backlog) + len(data) > MAX_BACKLOG_BYTES:
            raise SlowClient
        self._backlog += data
        self._has_more.set()

    async def _write(self, send: Send) -> None:
        while True:
            await self._has_more.wait()
            self._has_more.clear()
            is_last, data = self._is_whole, bytes(self._backlog)
            self._backlog.clear()
            if data or is_last:
                await send({"type": "http.response.body", "body": data, "more_body": not is_last})
            if is_last:
                return
