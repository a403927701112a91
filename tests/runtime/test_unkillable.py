"""A process that SIGKILL does nothing to is over for everybody but the ledger, of either kind (07 §5.4)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from framework.runtime.child import Child
from framework.runtime.kept import Kept
from framework.runtime.logs import LogBuffer
from framework.runtime.process import EngineProcess


class Held(EngineProcess):
    """A process that a driver holds, so that SIGKILL does nothing to it."""

    def signal_kill(self) -> None:
        """Nothing happens."""


class HeldChild(Held, Child):
    """One that dies with us."""


class HeldKept(Held, Kept):
    """One that goes on without us."""


@pytest.mark.parametrize("is_kept", [False, True])
async def test_what_outlives_sigkill_is_over_for_everybody_else(tmp_path: Path, is_kept: bool) -> None:
    argv, env, log = [shutil.which("sleep") or "/bin/sleep", "60"], dict(os.environ), LogBuffer()
    child: EngineProcess
    if is_kept:
        child = await HeldKept.spawn(argv, env, log=log, cwd=tmp_path, output=tmp_path / "out")
    else:
        child = await HeldChild.spawn(argv, env, log=log, cwd=tmp_path)
    child.give_up()
    assert await asyncio.wait_for(child.exited, 30.0) == -signal.SIGKILL
    assert not child.alive
    assert child.group_members() == (child.pid,), "what it holds stays booked as long as it is there"
    assert (await child.kill()).survivors == ()
    await child.close()
