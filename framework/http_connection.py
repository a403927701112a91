"""One client's connection: uvicorn's, with bounds on what comes before a request is known (RFC 9112).

uvicorn makes one of these for every connection that the listener accepts. Beyond what uvicorn does it
refuses
  - heads that are too large (414, 431) or do not arrive in time, and connections beyond the limit (503);
  - requests without a `Host`, or with several (400), and tunnels (405). A target with a host of its own
    replaces the header, so that every later look at `Host` sees the one that counts;
  - requests that wait behind others without end.
It goes on without an upgrade that a client offers, with the body that came along. None of this is logged:
whoever can connect could fill the log with it.

A client that ends its sending has left: `close()` and a half-close look the same on the wire until something
is written, which is too late for a cancel (08 §4.2). So uvicorn's `eof_received` stays as it is.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from framework.http_limits import KIB, HttpLimits

# The colon, the blank and the end of the line of a header.
FIELD_MARKS_BYTES = 4


class Refusal(Exception):
    """Why a connection ends here; `text` is one sentence for whoever looks at the answer."""

    def __init__(self, status: HTTPStatus, text: str, headers: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers

    def answer(self) -> bytes:
        """The whole answer."""
        body = f"{self.text}\n"
        return (
            f"HTTP/1.1 {self.status} {self.status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n{self.headers}connection: close\r\n\r\n{body}"
        ).encode("ascii")


class HttpConnection(HttpToolsProtocol):
    """See the module. `limits` are those of the class that the listener serves with."""

    limits = HttpLimits()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""
        self._timer: asyncio.TimerHandle | None = None
        """Closes the connection when a head takes too long, and after a refusal."""
        self._unclaimed_bytes = 0
        """Received since the last complete head or part of a body."""
        self._refused = False
        self._running: RequestResponseCycle | None = None
        """The request being answered; `cycle` is the newest, which may wait behind it."""
        self._plain_head = b""
        """The head of a request that offers an upgrade, without the offer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take the connection, or refuse it when there are too many."""
        if len(self.connections) >= self.limits.connections:
            self.transport, self._refused = transport, True
            transport.write(_too_many_connections().answer())
            # Without lingering: those who wait would be connections beyond the limit as well.
            transport.close()
            return
        super().connection_made(transport)
        self._close_after(self.limits.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request being answered too; uvicorn tells the newest only."""
        self._stop_timer()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and look whether it goes too far."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._unclaimed_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            # What a callback raises comes wrapped.
            cause = error.__context__
            broken = Refusal(HTTPStatus.BAD_REQUEST, "This is no valid HTTP request.")
            self._refuse(cause if isinstance(cause, Refusal) else broken)
            return
        if self._unclaimed_bytes > self.limits.head_bytes:
            self._refuse(self._too_large())
        elif self._timer is None and self._open_request is None:
            # The next head has begun, or the rest of a body that nobody waits for.
            self._close_after(self.limits.head_timeout_s)

    def on_headers_complete(self) -> None:
        """Check the head and let it be served. Raises Refusal."""
        if self.parser.should_upgrade():
            self._plain_head = self._without_upgrade()
            return
        self._check_head()
        self._stop_timer()
        self._unclaimed_bytes = 0
        super().on_headers_complete()
        if self.pipeline:
            # uvicorn stops reading here, and would no longer see the client leave.
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Part of a body; how much of it is kept is for whoever reads it."""
        self._unclaimed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request, or of a head that is parsed once more."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def cut(self) -> None:
        """End the connection whatever it carries; its request is told that the client has left."""
        self.transport.abort()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _open_request(self) -> RequestResponseCycle | None:
        """The newest request, unless it is answered."""
        newest = cast("RequestResponseCycle | None", self.cycle)
        return None if newest is None or newest.response_complete else newest

    def _parse(self, data: bytes) -> None:
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # The parser takes no body behind an offer of an upgrade. Without the offer, a new one does.
                rest = rest[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                # As uvicorn makes its own.
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self.parser.feed_data(self._plain_head)

    def _without_upgrade(self) -> bytes:
        """The head at hand without the offer. Raises Refusal for a tunnel, which is an upgrade by method."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This server is no proxy.", "allow: GET, POST\r\n")
        fields = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([method + b" " + self.url + b" HTTP/" + version, *fields, b"", b""])

    def _check_head(self) -> None:
        head_bytes, hosts = len(self.url), 0
        for name, value in self.headers:
            head_bytes += len(name) + len(value) + FIELD_MARKS_BYTES
            hosts += name == b"host"
        if head_bytes > self.limits.head_bytes:
            raise self._too_large()
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "A request has exactly one Host header.")
        if len(self.pipeline) >= self.limits.pipelined:
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests wait on this connection.")
        if not self.url.startswith(b"/"):
            self._take_host_of_target()

    def _take_host_of_target(self) -> None:
        """`GET http://name/path`: the name in the target counts, not the header (RFC 9112 §3.2.2)."""
        scheme, mark, rest = self.url.partition(b"://")
        if not mark or scheme.lower() not in (b"http", b"https"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The target is neither a path nor an http address.")
        end = min((at for at in map(rest.find, (b"/", b"?", b"#")) if at >= 0), default=len(rest))
        if not rest[end:].startswith(b"/"):
            self.url = scheme + mark + rest[:end] + b"/" + rest[end:]
        self.headers[:] = [field for field in self.headers if field[0] != b"host"]
        self.headers.append((b"host", rest[:end]))

    def _too_large(self) -> Refusal:
        limit = f"the limit is {self.limits.head_bytes // KIB} KiB for address and headers."
        if len(self.url) > self.limits.head_bytes // 2:
            return Refusal(HTTPStatus.REQUEST_URI_TOO_LONG, f"The address is too long; {limit}")
        return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"The headers are too large; {limit}")

    def _refuse(self, refusal: Refusal) -> None:
        """Read no more. Whole requests are still answered; our words in between would spoil the answers."""
        self._refused = True
        self._stop_timer()
        request = self._open_request
        if request is not None and not request.more_body:
            request.keep_alive = False
            return
        if request is not None:
            # It is the body that is broken: no answer but this one, if none has begun.
            request.disconnected = True
            request.message_event.set()
            if request.response_started or request is not self._running:
                self.transport.close()
                return
        self.transport.write(refusal.answer())
        self.transport.write_eof()
        self._close_after(self.limits.linger_s)

    def _close_after(self, delay_s: float) -> None:
        self._timer = self.loop.call_later(delay_s, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _too_many_connections() -> Refusal:
    text = "Too many connections are open; try again in a few seconds."
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, text, "retry-after: 5\r\n")


def connection_type(bounds: HttpLimits) -> type[HttpConnection]:
    """The class to serve with; uvicorn makes the instances itself."""

    class Limited(HttpConnection):
        limits = bounds

    return Limited
