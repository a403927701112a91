"""The answer as it goes to the client: headers once, keep-alive comments, patience with slow readers (08 §7).

Sits directly on the ASGI `send`; nothing between it and the socket may buffer. Every `write` returns when
the server has room again, which is what makes the reading side pause (08 §7.7).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Message, Send

from framework.proxy.errors import ClientGone, ErrorForm, ProxyError, envelope
from framework.proxy.limits import ProxyLimits
from framework.proxy.patience import Patience

KEEP_ALIVE = b": keep-alive\n\n"
JSON = "application/json"
STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    # Some reverse proxies collect a response before they pass it on unless told not to.
    "x-accel-buffering": "no",
}


class ClientAnswer:
    """One answer. Either `send_json`, or `start_stream`, `write` as often as needed, and `end`."""

    def __init__(self, send: Send, *, request_id: str, limits: ProxyLimits) -> None:
        self._send = send
        self._request_id = request_id
        self._limits = limits
        self._lock = asyncio.Lock()
        self._patience = Patience()
        self._gone = False
        self._timer: asyncio.TimerHandle | None = None
        self._comment: asyncio.Task[None] | None = None
        self._last_sent = 0.0
        self.error_form: ErrorForm = envelope
        """How the family of the route writes an error."""
        self.status: int | None = None
        """Status that was sent, None while nothing was."""
        self.ended = False
        """Whether the last byte is out."""
        self.headers: Mapping[str, str] = {}
        """Headers of the answer besides its own, such as those for pages of other origins."""

    @property
    def started(self) -> bool:
        """Whether the client has its status and headers."""
        return self.status is not None

    async def send_json(self, status: int, payload: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A complete JSON answer. Raises ClientGone."""
        self.ended = True
        length = str(len(payload))
        await self._start(status, {"content-type": JSON, "content-length": length, **(headers or {})})
        await self._put({"type": "http.response.body", "body": payload})

    async def send_error(self, error: ProxyError) -> None:
        """An error as a complete answer. Raises ClientGone."""
        await self.send_json(error.status, self.error_form(error, self._request_id), error.headers)

    def keep_alive(self) -> None:
        """Fill silences with comments from now on; the first also starts the stream (08 §7.2)."""
        if self._limits.keepalive_interval_s > 0:
            self._last_sent = asyncio.get_running_loop().time()
            self._arm(self._limits.keepalive_interval_s)

    def stop_keep_alive(self) -> None:
        """Begin no further comment."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Nobody waits for this answer any more."""
        self.stop_keep_alive()
        if self._comment is not None:
            self._comment.cancel()

    async def write(self, data: bytes) -> None:
        """Bytes of the stream, after its headers. Raises ClientGone."""
        if not self.started:
            await self._start(200, STREAM_HEADERS)
        if data:
            await self._put({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """The last bytes of the stream, in one piece with its end. Raises ClientGone."""
        self.stop_keep_alive()
        if not self.started:
            await self._start(200, STREAM_HEADERS)
        self.ended = True
        await self._put({"type": "http.response.body", "body": data, "more_body": False})

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        both = {**self.headers, **headers} if self.headers else headers
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in both.items()]
        encoded.append((b"x-request-id", self._request_id.encode("latin-1")))
        # Text of models is never taken for a page, whatever it looks like.
        encoded.append((b"x-content-type-options", b"nosniff"))
        await self._put({"type": "http.response.start", "status": status, "headers": encoded})

    async def _put(self, message: Message) -> None:
        # `async with` makes three coroutines of this, for every chunk.
        await self._lock.acquire()
        try:
            if self._gone:
                raise ClientGone
            with self._patience.within(self._limits.client_write_timeout_s):
                await self._send(message)
        except OSError as error:
            # Nothing was taken in time (TimeoutError is an OSError), or the server says the client has left.
            self._gone = True
            raise ClientGone from error
        finally:
            self._lock.release()
        self._last_sent = asyncio.get_running_loop().time()

    def _arm(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        """Looks at the clock once an interval instead of moving a timer with every chunk."""
        interval = self._limits.keepalive_interval_s
        silent_s = asyncio.get_running_loop().time() - self._last_sent
        if silent_s < interval:
            self._arm(interval - silent_s)
            return
        if self._comment is None or self._comment.done():
            self._comment = asyncio.create_task(self._send_comment())
        self._arm(interval)

    async def _send_comment(self) -> None:
        try:
            if not self.started:
                await self._start(200, STREAM_HEADERS)
            # Whoever writes now breaks the silence, and behind the end nothing may follow.
            if not self.ended and not self._lock.locked():
                await self._put({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
        except ClientGone:
            # The watcher of the connection, or the next write, ends the request.
            self.stop_keep_alive()
