"""Real remote devices for the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rpc_servers import RpcServer, StartServer, start_rpc_server


@pytest.fixture
def rpc_server(engine_binary: Path, tmp_path: Path) -> Iterator[StartServer]:
    """Start servers; they are ended afterwards."""
    running: list[RpcServer] = []

    def start() -> RpcServer:
        running.append(start_rpc_server(engine_binary, tmp_path))
        return running[-1]

    yield start
    for server in running:
        server.stop()
