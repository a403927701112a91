"""A command that is told to end cleans up as with Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from framework.commands.ending import run_to_its_end

COMMAND = """
import asyncio
from framework.commands.ending import run_to_its_end

async def work():
    try:
        print("begun", flush=True)
        await asyncio.sleep(600)
    finally:
        print("cleaned up", flush=True)

try:
    run_to_its_end(work())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["told to end", "Ctrl-C"])
def test_work_is_cancelled_and_waited_for(number: signal.Signals) -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.stdout.read() == "cleaned up\ninterrupted\n"
        assert process.stderr.read() == ""


def test_the_answer_comes_back_and_the_handler_is_put_back() -> None:
    async def work() -> int:
        return 7

    before = signal.getsignal(signal.SIGTERM)
    assert run_to_its_end(work()) == 7
    assert signal.getsignal(signal.SIGTERM) is before
