"""What a process says last is read before its exit is told, however busy the event loop is."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from framework.runtime.child import Child
from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.process import EngineProcess

# More than one read, fewer lines than the log keeps of a second.
TALK = """
i=0
while [ $i -lt 150 ]; do echo $i $(printf %0800d 0); i=$((i+1)); done
echo the cause
kill -KILL $$
"""
HELD_UP_S = 0.3


def hold_up() -> None:
    """What no code of the event loop should do."""
    time.sleep(HELD_UP_S)


async def hold_up_each_turn(over: asyncio.Event) -> None:
    """Other work of the loop, each turn of which takes longer than anybody waits."""
    while not over.is_set():
        hold_up()
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_kept", [False, True])
async def test_last_words_come_before_the_exit(tmp_path: Path, is_kept: bool) -> None:
    argv, env, log = ["/bin/sh", "-c", TALK], dict(os.environ), LogBuffer()
    child: EngineProcess
    if is_kept:
        child = await Kept.spawn(argv, env, log=log, cwd=tmp_path, output=tmp_path / "out")
    else:
        child = await Child.spawn(argv, env, log=log, cwd=tmp_path)
    over = asyncio.Event()
    busy = asyncio.create_task(hold_up_each_turn(over))
    told: list[str] = []
    child.exited.add_done_callback(lambda _: told.extend(line.text for line in log.last(1)))
    assert await asyncio.wait_for(child.exited, 60.0) == -signal.SIGKILL
    over.set()
    await busy
    await child.close()
    assert told == ["the cause"]
