"""An application behind the listener's own server, for real clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from framework.http_limits import HttpLimits
from framework.http_server import HttpServer
from framework.listener import Listening
from framework.values.manifest import Listener
from tests.support.waiting import eventually

LIMITS = HttpLimits()


@asynccontextmanager
async def served(app: ASGIApp, limits: HttpLimits = LIMITS) -> AsyncIterator[str]:
    """Serve an application on loopback; its address, without a path."""
    listening = Listening.open(Listener("127.0.0.1", 0))
    server = HttpServer(app, limits)
    task = asyncio.create_task(server.serve([listening.socket]))
    await eventually(lambda: server.started, what="the server")
    yield f"http://{listening.address}"
    server.should_exit = True
    server.force_exit = True
    await task
