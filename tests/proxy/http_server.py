"""The endpoint on a real socket, for real clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from tests.support.waiting import eventually, unused_port


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an application on loopback; its address, without a path."""
    port = unused_port()
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    # The test runner has signal handlers of its own.
    task = asyncio.create_task(server._serve())
    await eventually(lambda: server.started, what="the server")
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    server.force_exit = True
    await task
