"""Asking a program: bounded, and nothing stays behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from framework.engines.process_output import OUTPUT_LIMIT_BYTES, process_output
from tests.engines.programs import write_program
from tests.support.waiting import eventually

ENV = {"PATH": os.environ["PATH"]}


def alive(pid_file: Path) -> bool:
    """Whether the process that wrote its id there still runs."""
    pid = int(pid_file.read_text("ascii"))
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def written(path: Path) -> None:
    await eventually(lambda: path.exists() and path.read_text("ascii").endswith("\n"), what=str(path))


async def test_both_outputs_and_the_exit_code_come_back(tmp_path: Path) -> None:
    script = write_program(tmp_path / "p", "echo out; echo err >&2; exit 3")
    output = await process_output((str(script),), ENV, timeout_s=10)
    assert (output.exit_code, output.stdout, output.stderr) == (3, "out\n", "err\n")
    assert output.fault == ""


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    script = write_program(tmp_path / "p", "kill -ILL $$")
    assert (await process_output((str(script),), ENV, timeout_s=10)).exit_code == -4


async def test_only_the_given_environment_is_seen(tmp_path: Path) -> None:
    script = write_program(tmp_path / "p", 'echo "$A-$HOME"')
    output = await process_output((str(script),), {**ENV, "A": "1"}, timeout_s=10)
    assert output.stdout == "1-\n"


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    script = write_program(tmp_path / "p", r"printf 'a\377b'")
    assert (await process_output((str(script),), ENV, timeout_s=10)).stdout == "a\ufffdb"


@pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param("gone", 0o755, id="absent"), pytest.param("p", 0o644, id="not executable")],
)
async def test_what_cannot_be_started_has_a_fault(tmp_path: Path, name: str, mode: int) -> None:
    write_program(tmp_path / "p", mode=mode)
    output = await process_output((str(tmp_path / name),), ENV, timeout_s=10)
    assert output.exit_code is None
    assert output.fault.startswith("could not be started: ")


async def test_time_out_kills_the_whole_group(tmp_path: Path) -> None:
    pids = [tmp_path / "parent", tmp_path / "child"]
    script = write_program(
        tmp_path / "p", f"trap '' TERM; echo $$ > {pids[0]}; sleep 60 & echo $! > {pids[1]}; wait"
    )
    output = await process_output((str(script),), ENV, timeout_s=2.0)
    assert (output.exit_code, output.fault) == (None, "did not end within 2 s")
    await eventually(lambda: not any(alive(pid) for pid in pids), 20.0, "the end of the group")


async def test_a_child_that_keeps_the_pipe_is_killed_too(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = write_program(tmp_path / "p", f"sleep 60 & echo $! > {child}; exit 0")
    output = await process_output((str(script),), ENV, timeout_s=2.0)
    assert output.exit_code is None
    await eventually(lambda: not alive(child), 20.0, "the end of the child")


async def test_cancelling_kills_the_process_before_it_goes_on(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = write_program(tmp_path / "p", f"echo $$ > {pid}; exec sleep 60")
    task = asyncio.create_task(process_output((str(script),), ENV, timeout_s=60))
    await written(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_endless_output_is_cut(tmp_path: Path) -> None:
    script = write_program(tmp_path / "p", "exec yes")
    output = await process_output((str(script),), ENV, timeout_s=30)
    assert (len(output.stdout), output.exit_code) == (OUTPUT_LIMIT_BYTES, None)
    assert "printed more than" in output.fault
