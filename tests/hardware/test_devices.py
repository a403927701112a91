"""Asking a binary for its devices, and what is left when it does not answer (04 §2.5)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from framework.engines.discovery import describe_binary, find_binary
from framework.hardware.devices import host_memory, list_devices
from framework.values.engine import EngineRef
from tests.conftest import MakeFake
from tests.engines.programs import program
from tests.support.waiting import eventually

ENV = {"PATH": os.environ["PATH"]}
LINE = "Vulkan0: llvmpipe (LLVM 15, 256 bits) (2048 MiB, 2048 MiB free)"


async def test_devices_come_first_and_host_memory_last(fake_engine: MakeFake) -> None:
    binary = describe_binary(fake_engine(devices=[LINE]).path, "manifest")
    found = await list_devices(binary, ENV)
    assert [device.name for device in found.devices] == ["Vulkan0", "CPU"]
    assert found.reasons == ()


def test_host_memory_is_what_the_system_has() -> None:
    memory = host_memory()
    assert memory.total_bytes == psutil.virtual_memory().total
    assert 0 < memory.free_bytes <= memory.total_bytes


async def test_rpc_servers_stand_in_front_of_the_question(tmp_path: Path) -> None:
    binary = program(tmp_path, 'echo "  RPC0: $* (1 MiB, 1 MiB free)"')
    found = await list_devices(binary, ENV, rpc=("a:1",))
    assert found.devices[0].description == "--rpc a:1 --list-devices"


@pytest.mark.parametrize(
    ("body", "timeout_s", "clause"),
    [
        pytest.param("echo 'no driver' >&2; exit 1", 30.0, "--list-devices exited with 1", id="exit code"),
        pytest.param("kill -ILL $$", 30.0, "--list-devices was ended by signal 4", id="signal"),
        pytest.param("exec sleep 60", 0.3, "--list-devices did not end within 0.3 s", id="time-out"),
    ],
)
async def test_without_an_answer_host_memory_remains_with_a_reason(
    tmp_path: Path, body: str, timeout_s: float, clause: str
) -> None:
    found = await list_devices(program(tmp_path, body), ENV, timeout_s=timeout_s)
    assert [device.name for device in found.devices] == ["CPU"]
    (reason,) = found.reasons
    assert (reason.code, reason.severity) == ("devices_unknown", "warning")
    assert clause in reason.message


async def test_the_last_line_of_a_failure_is_evidence(tmp_path: Path) -> None:
    found = await list_devices(program(tmp_path, "echo 'no driver' >&2; exit 1"), ENV)
    assert found.reasons[0].evidence["last_line"] == "no driver"


async def test_an_interrupted_question_leaves_no_process(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    binary = program(tmp_path, f"echo $$ > {pid}; exec sleep 60")
    task = asyncio.create_task(list_devices(binary, ENV))
    await eventually(lambda: pid.exists() and pid.read_text("ascii").endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(int(pid.read_text("ascii")))


@pytest.mark.engine
async def test_the_real_engine_answers() -> None:
    found = await list_devices(find_binary(EngineRef(), os.environ), os.environ)
    assert found.devices[-1].name == "CPU"
    assert found.reasons == ()
