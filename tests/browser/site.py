"""The dashboard over the fake system, served by uvicorn in the event loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn

from tests.dashboard.fake_system import FakeSystem

START_TIMEOUT_S = 10.0


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to pytest."""
        yield


@asynccontextmanager
async def serve(system: FakeSystem, *, port: int = 0) -> AsyncIterator[str]:
    """The address of the running site, without a slash at the end. Port 0 takes a free one."""
    config = uvicorn.Config(
        system.app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=1, access_log=False
    )
    server = _Server(config)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(START_TIMEOUT_S):
            while not server.started:
                await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            # A test that failed leaves nothing behind that the next one would wait for.
            server.should_exit = True
            await serving
