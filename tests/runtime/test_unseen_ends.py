"""A process that has ended is over at once for who asks the system, before its exit is seen (PL-06)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from framework.runtime.child import Child
from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.process import EngineProcess
from framework.runtime.process_identity import start_identity
from tests.conftest import MakeFake
from tests.e2e.keeping import stranger
from tests.runtime.conftest import FleetRig, request_for
from tests.support.waiting import eventually

WAIT_S = 30.0
SLEEP = [shutil.which("sleep") or "/bin/sleep", "60"]
Begin = Callable[[Path, ExitStack], Awaitable[EngineProcess]]


async def child(folder: Path, _: ExitStack) -> EngineProcess:
    return await Child.spawn(SLEEP, dict(os.environ), log=LogBuffer(), cwd=folder)


async def kept(folder: Path, _: ExitStack) -> EngineProcess:
    return await Kept.spawn(SLEEP, dict(os.environ), log=LogBuffer(), cwd=folder, output=folder / "out")


async def taken_over(folder: Path, stack: ExitStack) -> EngineProcess:
    pid = stack.enter_context(stranger(*SLEEP))
    (folder / "out").touch()
    return Kept.adopt(pid, start_identity(pid), log=LogBuffer(), output=folder / "out")


def kill_and_wait_unseen(pid: int, is_over: Callable[[], bool]) -> None:
    """No await: the event loop sees nothing meanwhile."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_S
    while not is_over() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_over()


@pytest.mark.parametrize("begin", [child, kept, taken_over])
async def test_its_end_is_known_before_it_is_seen(begin: Begin, tmp_path: Path) -> None:
    with ExitStack() as stack:
        process = await begin(tmp_path, stack)
        assert not process.is_over()
        kill_and_wait_unseen(process.pid, process.is_over)
        assert process.alive, "its exit was not seen yet"
        await asyncio.wait_for(process.exited, WAIT_S)
        assert process.is_over()
        await process.close()


async def test_a_request_goes_to_no_engine_that_has_ended_unseen(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf, live={"replicas": 2}))
    await eventually(lambda: rig.kinds().count("ready") == 2, what="both replicas to be ready")
    pids = [rig.instance("m", replica).pid for replica in range(2)]
    # Whatever is first in line for a request.
    first = await rig.fleet.acquire("m", key=None)
    first.release()
    kill_and_wait_unseen(pids[first.replica] or 0, first.is_over)
    other = await rig.fleet.acquire("m", key=None)
    assert other.replica != first.replica
    other.release()
    kill_and_wait_unseen(pids[other.replica] or 0, other.is_over)
    # Nobody is left that could be given: it waits, and is not refused.
    third = await asyncio.wait_for(rig.fleet.acquire("m", key=None), WAIT_S)
    assert third.generation > 1
    third.release()
