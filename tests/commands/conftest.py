"""Commands against a server in this process: real HTTP, no engines."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from framework import cli, state_dir
from framework.api.routes import api_routes
from tests.api.world import TOKEN, World, make_world
from tests.support.model_files import write_tiny_gguf
from tests.support.waiting import wait_until

START_TIMEOUT_S = 10.0
MANIFEST = """
[server]
listen = "{listen}"

[models.tiny]
source = "tiny.gguf"
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Everything on stdout, which must be one JSON document."""
        return json.loads(self.out)


Paddock = Callable[..., Ended]


@pytest.fixture
def paddock(capsys: pytest.CaptureFixture[str]) -> Paddock:
    """Run one command line in this process."""

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        code = cli.run(list(arguments))
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int) -> Path:
    """A working directory with a good manifest and its model; nothing listens yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDOCK_STATE_DIR", str(tmp_path / "state"))
    write_tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "serve.toml").write_text(MANIFEST.format(listen=f"127.0.0.1:{free_port}"))
    return tmp_path


@dataclass
class Running:
    """A server on a loopback port, its world, and the loop that it runs on."""

    world: World
    loop: asyncio.AbstractEventLoop
    port: int

    def record(self, kind: str, message: str, **fields: Any) -> None:
        """Record an event as the server would."""

        async def record() -> None:
            self.world.services.events.record(kind, message, **fields)

        asyncio.run_coroutine_threadsafe(record(), self.loop).result(START_TIMEOUT_S)


@pytest.fixture
def server(place: Path) -> Iterator[Running]:
    """A running server of the manifest in `place`, found by the state directory."""
    directory = place / "state"
    state_dir.prepare(directory)
    (directory / "token").write_text(TOKEN)
    (directory / "token").chmod(0o600)
    with serving(make_world(path=place / "serve.toml")) as running:
        state_dir.record_listener(directory, f"127.0.0.1:{running.port}")
        yield running


class serving:  # noqa: N801  used as a function
    """Serve a world from a thread for the length of a `with` block."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=api_routes(world.services))
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Running:
        self._thread.start()
        wait_until(lambda: self._server.started, START_TIMEOUT_S, "the server to start")
        return Running(self._world, self._loop, self._socket.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(START_TIMEOUT_S)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._server.serve(sockets=[self._socket]))
        finally:
            self._loop.close()
