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
from tests.e2e.keeping import stranger

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


@pytest.mark.parametrize("begin", [child, kept, taken_over])
async def test_its_end_is_known_before_it_is_seen(begin: Begin, tmp_path: Path) -> None:
    with ExitStack() as stack:
        process = await begin(tmp_path, stack)
        assert not process.is_over()
        os.kill(process.pid, signal.SIGKILL)
        # No await: the event loop sees nothing meanwhile.
        deadline = time.monotonic() + WAIT_S
        while not process.is_over() and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251  the loop is to stand still
        assert process.is_over()
        assert process.alive, "its exit was not seen yet"
        await asyncio.wait_for(process.exited, WAIT_S)
        assert process.is_over()
        await process.close()
