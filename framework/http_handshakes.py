"""A listener over TLS whose handshakes are bounded in number, as connections are.

A client that begins a handshake and does not go on holds memory and an open file before anything is known of
it. So connections are taken in the clear here, and beyond the limit of handshakes the oldest one ends, which
is the one that stalls; asyncio's server has no such limit. What is safe counts as a connection and is told
when there are too many (http_connection). Made by http_server.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from framework.http_limits import HttpLimits

# Without open files left, each accept fails at once.
PAUSE_S = 1.0


class TlsListener:
    """Takes connections of one socket from `start` to `close`. Belongs to one event loop."""

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext,
        limits: HttpLimits,
        connection: Callable[[], asyncio.Protocol],
    ) -> None:
        """`connection` makes what serves a client once it is safe."""
        self._listening = listening
        self._context = context
        self._limits = limits
        self._connection = connection
        self._under_way: dict[asyncio.Task[None], socket.socket] = {}
        self._accepting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take connections from here on. REQUIRES: the socket listens and does not block."""
        self._accepting = asyncio.create_task(self._accept(), name="accept")

    def close(self) -> None:
        """Take no more, and end the handshakes under way."""
        if self._accepting is not None:
            self._accepting.cancel()
        for client in self._under_way.values():
            _hang_up(client)

    async def wait_closed(self) -> None:
        """Wait for the end of what `close` ends."""
        ending = [task for task in (self._accepting, *self._under_way) if task is not None]
        if ending:
            await asyncio.wait(ending)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listening)
            except ConnectionAbortedError:
                continue
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            if len(self._under_way) >= self._limits.handshakes:
                _hang_up(self._under_way.pop(next(iter(self._under_way))))
            handshake = asyncio.create_task(self._shake(client), name="handshake")
            self._under_way[handshake] = client
            handshake.add_done_callback(lambda task: self._under_way.pop(task, None))

    async def _shake(self, client: socket.socket) -> None:
        # It left, took too long, or speaks no TLS: a log of that could be filled by anybody.
        with contextlib.suppress(OSError, ssl.SSLError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection,
                client,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.head_timeout_s,
            )


def _hang_up(client: socket.socket) -> None:
    """The handshake sees a client that left; a cancel would wait for words of farewell."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
