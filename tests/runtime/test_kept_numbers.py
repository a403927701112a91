"""The number of a process that was taken over may become somebody else's once that process has gone."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.process_identity import start_identity


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


async def test_nobody_else_gets_its_signals(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    (tmp_path / "out").touch()
    earlier = start_identity(stranger.pid).replace("proc:", "proc:9")
    ours = Kept.adopt(stranger.pid, earlier, log=LogBuffer(), output=tmp_path / "out")
    assert await asyncio.wait_for(ours.exited, 30.0) is None
    assert (await ours.terminate()).signals == ()
    assert (await ours.kill()).survivors == ()
    await ours.close()
    assert stranger.poll() is None
