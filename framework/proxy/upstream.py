"""Calls to instances: one connection per call, closed with it (08 §3). The only module that knows aiohttp.

Called by the generation driver with a lease. The library's own read time-out is off, since comment lines
would keep it quiet; the caller's clocks decide. Foreign exceptions become ours here and nowhere else.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from framework.proxy.errors import ProxyError
from framework.proxy.limits import KIB, ProxyLimits
from framework.runtime.lease import FailureKind, Lease

# Small enough that an instance which reads at all takes a piece well within the write limit.
WRITE_PIECE_BYTES = 64 * KIB
HEADERS = {
    "content-type": "application/json",
    # Decompressing on our side would only delay events.
    "accept-encoding": "identity",
    "user-agent": "paddock",
}


class UpstreamLost(Exception):
    """The connection to an instance failed or broke. `kind` is what the fleet wants to know (08 §5.3)."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail


def failure_kind(error: aiohttp.ClientError | OSError) -> FailureKind:
    """The kind of a library error that is not a time-out."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return "connect"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "close"
    if isinstance(error, aiohttp.ClientPayloadError | OSError):
        return "read"
    # What is left of connection errors is raised while the request is written.
    return "write" if isinstance(error, aiohttp.ClientConnectionError) else "protocol"


class UpstreamAnswer:
    """An answer whose headers are there. `close` on every path; it returns at once."""

    def __init__(self, response: aiohttp.ClientResponse, body: RequestPayload, grace_s: float) -> None:
        self._response = response
        self._body = body
        self._grace_s = grace_s
        self.status = response.status
        self.is_event_stream = response.content_type == "text/event-stream"

    async def read(self) -> bytes:
        """What has arrived since the last call, at least one byte; empty at the end. Raises UpstreamLost."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamLost(failure_kind(error), str(error)) from error

    async def read_all(self, limit_bytes: int, *, cut: bool = False) -> bytes:
        """The whole body, or with `cut` its first `limit_bytes`.

        Raises UpstreamLost, and ProxyError `upstream_protocol_error` for a body above the limit.
        """
        parts: list[bytes] = []
        room = limit_bytes
        while part := await self.read():
            parts.append(part)
            room -= len(part)
            if room < 0:
                if cut:
                    break
                raise ProxyError(
                    "upstream_protocol_error", f"The engine's answer is larger than {limit_bytes} bytes."
                )
        return b"".join(parts)[:limit_bytes]

    def close(self) -> None:
        """End the connection; an instance that does not let it close loses it after the grace time."""
        self._response.close()
        self._body.abort_later(self._grace_s)


class RequestPayload(aiohttp.payload.Payload):
    """A body that is written in pieces, each within a time limit (08 §3.4)."""

    def __init__(self, body: bytes, *, piece_timeout_s: float) -> None:
        super().__init__(body, content_type="application/json")
        self._size = len(body)
        self._piece_timeout_s = piece_timeout_s
        self._transport: asyncio.Transport | None = None
        self.stalled = False
        """Whether the instance took nothing for the time limit."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text, for the library's own use."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body; called by the library."""
        self._transport = getattr(writer, "transport", None)
        try:
            for start in range(0, len(self._value), WRITE_PIECE_BYTES):
                async with asyncio.timeout(self._piece_timeout_s):
                    await writer.write(self._value[start : start + WRITE_PIECE_BYTES])
        except TimeoutError:
            self.stalled = True
            raise

    def abort_later(self, grace_s: float) -> None:
        """Cut the connection if unsent bytes keep it open after the grace time."""
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() > 0:
            asyncio.get_running_loop().call_later(grace_s, transport.abort)


class Upstream:
    """Makes calls. Belongs to one event loop; its session is made with the first call."""

    def __init__(self, limits: ProxyLimits) -> None:
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None

    async def post(self, lease: Lease, path: str, body: bytes) -> UpstreamAnswer:
        """Send one POST and wait for the headers of its answer.

        Raises UpstreamLost, and ProxyError `connect_timeout` when the instance lets us wait for a connection
        or takes nothing of the body.
        """
        payload = RequestPayload(body, piece_timeout_s=self._limits.write_timeout_s)
        try:
            response = await self._ready_session().post(
                URL(lease.base_url + path, encoded=True),
                data=payload,
                headers={**HEADERS, **lease.headers},
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise self._translated(error, payload) from error
        except BaseException:
            # A cancel. The library has closed the connection; an instance that reads nothing holds it open.
            payload.abort_later(self._limits.close_grace_s)
            raise
        return UpstreamAnswer(response, payload, self._limits.close_grace_s)

    async def close(self) -> None:
        """Close the session. Calls that still run break."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _translated(
        self, error: aiohttp.ClientError | OSError, payload: RequestPayload
    ) -> ProxyError | UpstreamLost:
        limits = self._limits
        payload.abort_later(limits.close_grace_s)
        if isinstance(error, aiohttp.ServerTimeoutError) or payload.stalled:
            return ProxyError(
                "connect_timeout",
                f"The engine did not take the request: no connection within {limits.connect_timeout_s:g} s, "
                f"or nothing read for {limits.write_timeout_s:g} s.",
            )
        return UpstreamLost(failure_kind(error), str(error))

    def _ready_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            options: dict[str, Any] = {"force_close": True, "limit": 0, "use_dns_cache": False}
            self._session = aiohttp.ClientSession(
                # 08 §3.1-3.4: own connection per call, no bound on them, no proxy of the environment.
                connector=aiohttp.TCPConnector(**options),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._limits.connect_timeout_s, sock_read=None
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        return self._session
