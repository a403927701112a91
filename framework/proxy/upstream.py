"""Calls to instances: one connection per call, closed with it (08 §3).

Called by the generation driver with a lease. There is no time-out on reading, since comment lines would keep
it quiet; the caller's clocks decide. No proxy of the environment is asked: instances are on loopback.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping

from framework.proxy.engine_connection import EngineConnection, UpstreamLost, WriteStalled
from framework.proxy.errors import ProxyError
from framework.proxy.limits import ProxyLimits
from framework.proxy.patience import Patience
from framework.runtime.lease import Lease

__all__ = ["Upstream", "UpstreamAnswer", "UpstreamLost"]

SCHEME = "http://"
UNFIT_FOR_PATH = re.compile(r"[\x00-\x20\x7f]")


class UpstreamAnswer:
    """An answer whose headers are there. `close` on every path; it returns at once."""

    def __init__(self, connection: EngineConnection, close: Callable[[EngineConnection], None]) -> None:
        self._connection = connection
        self._close = close
        self.status = connection.status
        self.content_type = connection.content_type
        """Without parameters, in lower case; empty when there is none."""
        self.read = connection.read
        """What has arrived since the last call, at least one byte; empty at the end. Raises UpstreamLost."""

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return self.content_type == "text/event-stream"

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
        self._close(self._connection)


class Upstream:
    """Makes calls. Belongs to one event loop."""

    def __init__(self, limits: ProxyLimits) -> None:
        self._limits = limits
        self._open: set[EngineConnection] = set()

    async def post(self, lease: Lease, path: str, body: bytes) -> UpstreamAnswer:
        """Send one POST and wait for the headers of its answer.

        Raises UpstreamLost, and ProxyError `connect_timeout` when the instance lets us wait for a connection
        or takes nothing of the body.
        """
        host, _, port = lease.base_url.removeprefix(SCHEME).rpartition(":")
        connection = await self._connect(host, int(port))
        try:
            connection.send(request_bytes(f"{host}:{port}", path, lease.headers, body))
            await connection.head()
        except WriteStalled as error:
            self._end(connection)
            raise self._too_slow() from error
        except BaseException:
            self._end(connection)
            raise
        return UpstreamAnswer(connection, self._end)

    def close(self) -> None:
        """End all connections. Calls that still run break."""
        for connection in tuple(self._open):
            self._end(connection)

    async def _connect(self, host: str, port: int) -> EngineConnection:
        connection = EngineConnection(write_timeout_s=self._limits.write_timeout_s)
        self._open.add(connection)
        try:
            with Patience().within(self._limits.connect_timeout_s):
                await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        except BaseException as error:
            self._end(connection)
            if isinstance(error, TimeoutError):
                raise self._too_slow() from error
            if isinstance(error, OSError):
                raise UpstreamLost("connect", str(error)) from error
            raise
        return connection

    def _end(self, connection: EngineConnection) -> None:
        self._open.discard(connection)
        connection.close(self._limits.close_grace_s)

    def _too_slow(self) -> ProxyError:
        limits = self._limits
        return ProxyError(
            "connect_timeout",
            f"The engine did not take the request: no connection within {limits.connect_timeout_s:g} s, "
            f"or nothing read for {limits.write_timeout_s:g} s.",
        )


def request_bytes(host: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A POST as it goes over the wire. The instance closes the connection behind its answer, as we do.

    `path` is what follows the address, encoded. Raises ValueError for one that would be more than that.
    """
    if UNFIT_FOR_PATH.search(path):
        raise ValueError(f"a path cannot hold blanks or control characters: {path!r}")
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "User-Agent: paddock", "Accept: */*"]
    # Decompressing on our side would only delay events.
    lines += ["Accept-Encoding: identity", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
