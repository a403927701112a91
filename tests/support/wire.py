"""HTTP byte by byte, against an application behind the listener's own server and event loop."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop
from starlette.types import ASGIApp

from framework.http_limits import HttpLimits
from framework.http_server import HttpServer
from framework.listener import Listening
from framework.values.manifest import Listener
from tests.support.waiting import wait_until

TIMEOUT_S = 30.0
CHUNK_BYTES = 2**16


class Wire:
    """One connection, as a client that may do anything."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)

    def send(self, data: bytes) -> None:
        """Send; what the server does not take because it closed is lost."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def answer(self) -> bytes:
        """Everything until the server closes. Fails when it does not."""
        received = b""
        while data := self._receive():
            received += data
        return received

    def until(self, end: bytes) -> bytes:
        """What comes up to `end`, and perhaps a little more. Fails when it does not come."""
        received = b""
        while end not in received:
            data = self._receive()
            assert data, f"closed before {end!r}: {received!r}"
            received += data
        return received

    def status(self) -> int:
        """The status of an answer behind which the server closes; 0 when it closes without one."""
        line = self.answer().partition(b"\r\n")[0]
        return int(line.split()[1]) if line else 0

    def close(self) -> None:
        """Leave."""
        self.socket.close()

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(CHUNK_BYTES)
        except ConnectionResetError:
            return b""


class WireServer:
    """Where clients connect; those that a test leaves open are closed at its end."""

    def __init__(self, address: Listener, server: HttpServer) -> None:
        self.address = address
        self.server = server
        self._wires: list[Wire] = []

    def connect(self, data: bytes = b"") -> Wire:
        """A new connection that has sent `data`."""
        wire = Wire((self.address.host, self.address.port))
        self._wires.append(wire)
        wire.send(data)
        return wire

    @property
    def open_connections(self) -> int:
        """How many connections the server has."""
        return len(self.server.server_state.connections)

    def close(self) -> None:
        """Close all connections."""
        for wire in self._wires:
            wire.close()
        self._wires.clear()


@contextmanager
def wire_server(
    app: ASGIApp, limits: HttpLimits, context: ssl.SSLContext | None = None
) -> Iterator[WireServer]:
    """Serve in a thread, on the event loop that the product uses; with a context over TLS."""
    listening = Listening.open(Listener("127.0.0.1", 0))
    server = HttpServer(app, limits, ssl_context=context)

    async def serve() -> None:
        await server.serve([listening.socket])

    thread = threading.Thread(target=uvloop.run, args=(serve(),), daemon=True)
    thread.start()
    wait_until(lambda: server.started, what="the server")
    wires = WireServer(listening.address, server)
    try:
        yield wires
    finally:
        # Before its clients: how a server ends that still has some is worth looking at.
        server.should_exit = True
        thread.join(TIMEOUT_S)
        wires.close()
        assert not thread.is_alive()
