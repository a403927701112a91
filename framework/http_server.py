"""uvicorn as both of our servers run it: bounded connections, no signals, an end that comes (07 §5.5).

Made by listener for the manager, and by nativeserver for the native engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from framework.http_connection import HttpConnection, connection_type
from framework.http_handshakes import TlsListener
from framework.http_limits import HttpLimits

# Streams end by themselves when what they follow is closed; what is left then is cut, such as the stream of a
# client that takes nothing.
GRACE_S = 1.0
# A request that was cut ends as with any client that leaves (08 §4.3: within 1 s); what does not is a fault.
FAULT_S = 3
# Browsers keep idle connections for about a minute; the side that closes first risks losing a request.
KEEP_ALIVE_S = 75


class HttpServer(uvicorn.Server):
    """uvicorn with bounded connections, without signal handlers of its own, and with an end that comes."""

    def __init__(
        self,
        app: ASGIApp,
        limits: HttpLimits,
        *,
        fault_s: int = FAULT_S,
        on_started: Callable[[], None] = lambda: None,
        ssl_key_file: Path | None = None,
        ssl_cert_file: Path | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=connection_type(limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=fault_s,
            ssl_keyfile=ssl_key_file,
            ssl_certfile=ssl_cert_file,
        )
        super().__init__(config)
        self._context = ssl_context
        self._limits = limits
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests from here on."""
        await super().startup(sockets if self._context is None else [])
        if (context := self._context) is not None:
            for one in sockets or []:
                self._listen_over_tls(one, context)
        self._on_started()

    def _listen_over_tls(self, one: socket.socket, context: ssl.SSLContext) -> None:
        one.listen(self.config.backlog)
        listener = TlsListener(one, context, self._limits, self._connection)
        listener.start()
        # uvicorn closes its servers and waits for them, and does nothing else with them.
        self.servers.append(cast("asyncio.Server", listener))

    def _connection(self) -> asyncio.Protocol:
        served: Any = self.config.http_protocol_class
        return cast(
            "asyncio.Protocol",
            served(config=self.config, server_state=self.server_state, app_state=self.lifespan.state),
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever serves."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for what ends by itself, cut the rest: handlers see a client that left, not a cancel."""
        cutting = asyncio.get_running_loop().call_later(GRACE_S, self._cut)
        try:
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, HttpConnection):
                connection.cut()
