"""The HTTP server around the application: bounded connections, TLS, and an end that comes (12 §1.4).

Made by serving.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from framework.http_connection import HttpConnection, connection_type
from framework.http_limits import limits_of_process
from framework.nativeserver.options import ServerOptions

# A pool of the manager or a browser closes first: the side that does so risks losing a request.
KEEP_ALIVE_S = 75
# Streams end by themselves when the engine ends their tasks; what is left then is cut.
GRACE_S = 1.0
# A request that was cut ends as with any client that leaves; what does not is a fault.
FAULT_S = 2


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers of its own."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        config = uvicorn.Config(
            app,
            http=connection_type(limits_of_process()),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=FAULT_S,
            ssl_keyfile=options.ssl_key_file,
            ssl_certfile=options.ssl_cert_file,
        )
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to serving."""
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
