"""Real engines on RPC servers that are missing, full, busy or of another version (MN-01, 06 §12, §14)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path, with_libraries
from framework.runtime import launch
from framework.runtime.engine_client import EngineClient
from framework.runtime.ladder import Climb, Ladder
from framework.values.engine import EngineRef
from framework.values.plan import LaunchPlan, Section
from tests.support.climbs import a_site
from tests.support.launch_plans import a_plan
from tests.support.rpc_servers import NO_GPU, OtherVersion, StartServer
from tests.support.waiting import eventually, unused_port

pytestmark = pytest.mark.engine

MIB = 2**20
# The model's weights are 92 MiB, and its largest tensor, which a server takes in as a whole, 29 MiB.
FULL, TOO_FULL_TO_RECEIVE = 10 * MIB, 100 * MIB


class Starts:
    """Launches of the demo model on remote devices."""

    def __init__(self, binary: Path, model: Path, folder: Path) -> None:
        self._engine = find_binary(EngineRef(path=binary), os.environ)
        self._model = model
        (folder / "run").mkdir()
        self.client = EngineClient()
        self._site = a_site(folder, self.client)

    def plan(self, *line: str) -> LaunchPlan:
        """The demo model with 1024 tokens, and this on the line."""
        env = with_libraries({**os.environ, **NO_GPU}, library_path(self._engine, os.environ))
        sections = (
            Section("basics", ("--ctx-size", "1024", "--parallel", "1", "--fit", "off", "-lv", "4")),
            Section("device", line, "optional"),
        )
        return a_plan(self._engine, *sections, model=self._model, env=env, context=1024)

    async def climb(self, *line: str, timeout_s: float = 60.0) -> Climb:
        """Launch; what got ready runs on."""
        ladder = Ladder(
            self.plan(*line),
            self._site,
            log_stem="start",
            mark="test",
            timeout_s=lambda: timeout_s,
            on_spawn=lambda running: None,
            on_attempt=lambda attempt: None,
            on_survivors=lambda pids: None,
        )
        return await ladder.climb()

    async def stop(self, climb: Climb) -> None:
        """End what got ready."""
        assert climb.running is not None
        await launch.stop(self._site, climb.running)


@pytest.fixture
async def starts(engine_binary: Path, smollm2: Path, tmp_path: Path) -> AsyncIterator[Starts]:
    """Launches of the demo model."""
    starts = Starts(engine_binary, smollm2, tmp_path)
    yield starts
    await starts.client.close()


def code_of(climb: Climb) -> str:
    assert climb.result.failure is not None
    return climb.result.failure.reason.code


def on(*endpoints: str, named: bool = True) -> tuple[str, ...]:
    devices = ",".join(f"RPC{number}" for number in range(len(endpoints)))
    return ("--rpc", ",".join(endpoints), *(("--device", devices) if named else ()))


@pytest.mark.parametrize("named", [True, False], ids=["device named", "device not named"])
async def test_no_start_goes_on_without_a_server_that_is_not_there(starts: Starts, named: bool) -> None:
    climb = await starts.climb(*on(f"127.0.0.1:{unused_port()}", named=named))
    assert code_of(climb) == "rpc_lost"
    assert len(climb.result.attempts) == 1
    assert climb.running is None


@pytest.mark.parametrize("named", [True, False], ids=["device named", "device not named"])
async def test_no_start_goes_on_without_a_server_of_another_version(starts: Starts, named: bool) -> None:
    server = OtherVersion()
    try:
        climb = await starts.climb(*on(server.endpoint, named=named))
    finally:
        server.close()
    assert code_of(climb) == "rpc_version_mismatch"
    assert climb.result.failure is not None
    assert server.version in climb.result.failure.reason.message


async def test_a_full_server_is_lack_of_memory_until_it_has_room_again(
    starts: Starts, rpc_server: StartServer
) -> None:
    server = rpc_server()
    server.leave_bytes(FULL)
    climb = await starts.climb(*on(server.endpoint))
    assert code_of(climb) == "out_of_memory"
    assert climb.result.failure is not None
    assert f"92 MiB for weights were refused on {server.endpoint}" in climb.result.failure.reason.message
    server.leave_bytes(None)
    climb = await starts.climb(*on(server.endpoint))
    assert climb.running is not None
    assert server.held_bytes() > 92 * MIB
    await starts.stop(climb)
    await eventually(lambda: server.held_bytes() < 92 * MIB, what="the server to give its memory back")


async def test_a_server_that_cannot_take_in_what_is_sent_is_lost(
    starts: Starts, rpc_server: StartServer
) -> None:
    server = rpc_server()
    server.leave_bytes(TOO_FULL_TO_RECEIVE)
    climb = await starts.climb(*on(server.endpoint))
    assert code_of(climb) == "rpc_lost"
    assert server.is_running()


async def test_a_server_that_serves_somebody_else_is_told_from_a_slow_load(
    starts: Starts, rpc_server: StartServer
) -> None:
    server = rpc_server()
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    climb = await starts.climb(*on(server.endpoint), timeout_s=3.0)
    writer.close()
    assert code_of(climb) == "rpc_busy"
    assert climb.result.failure is not None
    assert "one program at a time" in climb.result.failure.reason.message


async def test_a_split_over_two_servers_puts_the_layers_where_it_says(
    starts: Starts, rpc_server: StartServer
) -> None:
    near, far = rpc_server(), rpc_server()
    climb = await starts.climb(*on(near.endpoint, far.endpoint), "--tensor-split", "20,11")
    assert climb.running is not None
    # Of 31 layers, 20 blocks are 42 MiB; ten blocks and the output are 50 MiB.
    assert 42 * MIB < near.held_bytes() < 92 * MIB
    assert 50 * MIB < far.held_bytes() < 92 * MIB
    await starts.stop(climb)
