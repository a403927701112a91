"""Real remote devices for the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.e2e.keeping import KEEP, wait_committed
from tests.support.paddock import RunningPaddock
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


@pytest.fixture
def kept(paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path) -> RunningPaddock:
    """A manager that keeps its one engine, ready."""
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf), server=KEEP)
    paddock.wait_state("a", "ready")
    wait_committed(paddock)
    return paddock
