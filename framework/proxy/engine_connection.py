"""One HTTP/1.1 call to an instance on its own connection, as an asyncio protocol (08 §3.2-3.4).

Made by `upstream`. Only what llama-server speaks: one request, one answer, then the connection is closed.
Nothing of the body is kept longer than until it is taken; beyond a bound, reading pauses.
"""

from __future__ import annotations

import asyncio

import httptools

from framework.proxy.limits import KIB
from framework.runtime.lease import FailureKind

# Small enough that an instance which reads at all takes a piece well within the write limit.
WRITE_PIECE_BYTES = 64 * KIB
# More than this is not read ahead of whoever takes it.
READ_AHEAD_BYTES = 64 * KIB
HEAD_LIMIT_BYTES = 64 * KIB
FIRST_FINAL_STATUS = 200


class UpstreamLost(Exception):
    """The connection to an instance failed or broke. `kind` is what the fleet wants to know (08 §5.3)."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail


class WriteStalled(Exception):
    """The instance took nothing of the request for the time limit."""


class EngineConnection(asyncio.Protocol):
    """See the module. `head` is awaited first, then `read` until it returns nothing; `close` in any case."""

    def __init__(self, *, write_timeout_s: float) -> None:
        self.status = 0
        self.content_type = ""
        self._write_timeout_s = write_timeout_s
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fault: Exception | None = None
        """Why no more comes, where that is not the end of the answer."""
        # What has arrived and was not taken.
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._reading_paused = False
        # What was not given to the transport yet.
        self._unsent = memoryview(b"")
        self._write_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._has_head = False
        self._is_framed = False
        """Whether the answer says where it ends; otherwise the end of the connection is its end."""
        self._ended = False

    # For whoever makes the call

    def send(self, request: bytes) -> None:
        """Send the request, in pieces, each of which must be taken within the limit."""
        self._unsent = memoryview(request)
        self._send_more()

    async def head(self) -> None:
        """Wait for status and headers. Raises UpstreamLost and WriteStalled."""
        while not self._has_head:
            await self._arrival()

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; empty at the end. Raises UpstreamLost."""
        while not self._parts:
            if self._ended:
                return b""
            await self._arrival()
        parts, self._parts, self._parts_bytes = self._parts, [], 0
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self, grace_s: float) -> None:
        """End the connection; unsent bytes that keep it open are dropped after the grace time."""
        self._unsent = memoryview(b"")
        self._stop_write_timer()
        transport = self._transport
        if transport is None:
            return
        if transport.get_write_buffer_size() > 0:
            self._loop.call_later(grace_s, transport.abort)
        transport.close()

    # Of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = transport  # type: ignore[assignment]  # a protocol of a TCP connection gets one that writes

    def data_received(self, data: bytes) -> None:
        """Parse, and wake whoever waits."""
        if self._ended or self._fault is not None:
            return
        if not self._has_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # What stands behind the end of the answer is not ours to judge: the connection is closed.
            if not self._ended:
                self._fail(UpstreamLost("protocol", f"no valid HTTP: {error}"))
            return
        if not self._has_head and self._head_bytes > HEAD_LIMIT_BYTES:
            self._fail(UpstreamLost("protocol", f"headers of more than {HEAD_LIMIT_BYTES // KIB} KiB"))
        elif (
            self._parts_bytes > READ_AHEAD_BYTES and self._transport is not None and not self._reading_paused
        ):
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The instance sends no more; asyncio closes the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._stop_write_timer()
        if self._ended or self._fault is not None:
            return
        if exc is None and self._has_head and not self._is_framed:
            self._ended = True
        elif isinstance(exc, BrokenPipeError):
            self._fault = UpstreamLost("write", str(exc))
        elif exc is not None or self._has_head:
            self._fault = UpstreamLost("read", str(exc or "the answer was cut off"))
        else:
            self._fault = UpstreamLost("close", "the connection was closed without an answer")
        self._wake()

    def pause_writing(self) -> None:
        """The instance is slow to take the request."""
        self._write_timer = self._loop.call_later(self._write_timeout_s, self._on_write_stalled)

    def resume_writing(self) -> None:
        """It has taken the most of what it was given."""
        self._stop_write_timer()
        self._send_more()

    # Of the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep what decides how the body is read."""
        name = name.lower()
        if name == b"content-type":
            self.content_type = value.decode("latin-1").partition(";")[0].strip().lower()
        elif name in (b"content-length", b"transfer-encoding"):
            self._is_framed = True

    def on_headers_complete(self) -> None:
        """The head of an answer; one of `100 Continue` is only the first."""
        status = self._parser.get_status_code()
        if status >= FIRST_FINAL_STATUS:
            self.status = status
            self._has_head = True

    def on_body(self, body: bytes) -> None:
        """A part of the body, without its framing."""
        self._parts.append(body)
        self._parts_bytes += len(body)

    def on_message_complete(self) -> None:
        """The end of the answer."""
        self._ended = self._has_head

    # Parts

    async def _arrival(self) -> None:
        """Until something happens. Raises what has gone wrong."""
        if self._fault is not None:
            raise self._fault
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, fault: Exception) -> None:
        self._fault = fault
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _send_more(self) -> None:
        while self._unsent and self._write_timer is None and self._transport is not None:
            piece, self._unsent = self._unsent[:WRITE_PIECE_BYTES], self._unsent[WRITE_PIECE_BYTES:]
            self._transport.write(piece)

    def _on_write_stalled(self) -> None:
        self._write_timer = None
        self._fail(WriteStalled())

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
