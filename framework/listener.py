"""The listener: bind it, serve HTTP on it, end in order on a signal (07 §5.5).

Called by app. SIGINT and SIGTERM end the manager, a second one at once; SIGHUP asks for a reload.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

import psutil
from starlette.types import ASGIApp

from framework.http_limits import limits_of_process
from framework.http_server import HttpServer
from framework.log_lines import flush
from framework.manifest.addresses import is_loopback
from framework.manifest.load import Loaded
from framework.values.manifest import Listener
from framework.values.problem import Problem
from framework.values.process import INTERRUPTED

BACKLOG = 1024


class ListenerTaken(Exception):
    """The address cannot be bound; the text says why and what to do."""


@dataclass(frozen=True)
class Listening:
    """A bound socket, and its address."""

    socket: socket.socket
    address: Listener

    @classmethod
    def open(cls, wanted: Listener) -> Listening:
        """Bind. Raises ListenerTaken."""
        try:
            found = socket.getaddrinfo(
                wanted.host, wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except OSError as error:
            raise ListenerTaken(
                f"server.listen = {wanted}: {wanted.host} is no address of this machine ({error.strerror});"
                " use 127.0.0.1 or one that `ip addr` shows."
            ) from error
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
            bound.listen(BACKLOG)
        except OSError as error:
            bound.close()
            raise ListenerTaken(f"server.listen = {wanted}: {_cannot_bind(error, wanted)}") from error
        bound.setblocking(False)
        return cls(bound, Listener(wanted.host, bound.getsockname()[1]))


def keep_closed(loaded: Loaded, bound: Listener) -> Loaded:
    """Refuse a manifest without `[access]` while the socket is one that other machines reach.

    The manifest's own `listen` may say otherwise, but that waits for the next `up`.
    """
    manifest = loaded.manifest
    if manifest is None or manifest.access or is_loopback(bound.host):
        return loaded
    problem = Problem(
        code="open_listener",
        file=str(manifest.path),
        line=1,
        column=1,
        path="access",
        message=f"the server still listens on {bound}, which other machines reach; without an [access] table"
        " anybody could use it: keep one until the next `paddock up`",
        found="no [access] table",
        allowed="at least one [access.NAME] with a key",
    )
    return replace(loaded, manifest=None, problems=(problem, *loaded.problems))


async def serve_http(
    app: ASGIApp,
    listening: Listening,
    stop: asyncio.Event,
    *,
    context: ssl.SSLContext | None,
    on_started: Callable[[], None],
    before_close: Callable[[], Awaitable[None]],
) -> int:
    """Serve until `stop`, over TLS where there is a context. The exit status.

    Models end before the listener, so that clients are told.
    """
    server = HttpServer(app, limits_of_process(), on_started=on_started, ssl_context=context)
    serving = asyncio.create_task(server.serve(sockets=[listening.socket]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await before_close()
    server.should_exit = True
    await serving
    return 0


def hold_hang_ups() -> None:
    """Until `heed_signals`: what is about to be read for the first time need not be read again (MR-01)."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@contextlib.contextmanager
def heed_signals(
    stop: asyncio.Event, on_reload: Callable[[], None], on_abandon: Callable[[], None]
) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`, a second one ends at once, after `on_abandon`; SIGHUP asks for a
    reload."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            try:
                on_abandon()
            finally:
                flush()
                os._exit(INTERRUPTED)
        stop.set()

    def reload() -> None:
        if not stop.is_set():
            on_reload()

    loop.add_signal_handler(signal.SIGINT, end)
    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
        hold_hang_ups()


def _cannot_bind(error: OSError, wanted: Listener) -> str:
    """Why, and what to do."""
    if error.errno == errno.EADDRINUSE:
        holder = _holder(wanted.port)
        return f"the address is in use{holder}; end that program or change server.listen."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{wanted.host} is no address of this machine; use 127.0.0.1 or one that `ip addr` shows."
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {wanted.port}; use a port from 1024 on."
    return f"{(error.strerror or str(error)).lower()}; change server.listen."


def _holder(port: int) -> str:
    """Who listens on the port, as far as this user may see it."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:2] == (port,)
            if listens and connection.pid:
                return f" (held by process {connection.pid}, {psutil.Process(connection.pid).name()})"
    return ""
