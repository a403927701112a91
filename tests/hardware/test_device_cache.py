"""Device lists that starts share, and for how long (04 §2.5)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from framework.hardware.device_cache import FRESH_S, WITHOUT_GPUS_S, DeviceCache
from framework.hardware.devices import DeviceList
from framework.values.engine import EngineBinary
from tests.engines.programs import program

ENV = {"PATH": os.environ["PATH"]}
GPU_LINE = "echo '  CUDA0: card (100 MiB, 50 MiB free)'"


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Counted:
    """An engine that counts how often it was asked, and a cache of its answers."""

    def __init__(self, directory: Path, body: str) -> None:
        self._asked = directory / "asked"
        self.binary: EngineBinary = program(directory, f"echo x >> {self._asked}; {body}")
        self.clock = Clock()
        self.cache = DeviceCache(clock=self.clock)

    async def ask(self, environ: dict[str, str] = ENV, *rpc: str) -> DeviceList:
        return await self.cache.get(self.binary, environ, rpc=rpc)

    @property
    def times(self) -> int:
        return len(self._asked.read_text().splitlines())


async def test_starts_that_come_together_share_one_list(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    lists = await asyncio.gather(*(engine.ask() for _ in range(5)))
    assert engine.times == 1
    assert {found.devices[0].name for found in lists} == {"CUDA0"}


async def test_what_is_free_is_asked_anew_after_some_seconds(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    await engine.ask()
    engine.clock.now_s = FRESH_S
    await engine.ask()
    assert engine.times == 2


async def test_that_there_is_no_gpu_holds_for_longer(tmp_path: Path) -> None:
    engine = Counted(tmp_path, "true")
    await engine.ask()
    engine.clock.now_s = WITHOUT_GPUS_S - 1
    await engine.ask()
    assert engine.times == 1
    engine.clock.now_s = WITHOUT_GPUS_S
    await engine.ask()
    assert engine.times == 2


async def test_a_question_that_must_be_asked_is_and_spares_the_next_one(tmp_path: Path) -> None:
    engine = Counted(tmp_path, "true")
    await engine.ask()
    await engine.cache.get_anew(engine.binary, ENV)
    assert engine.times == 2
    await engine.ask()
    assert engine.times == 2


async def test_a_failure_is_remembered_with_its_reason(tmp_path: Path) -> None:
    engine = Counted(tmp_path, "exit 3")
    lists = [await engine.ask(), await engine.ask()]
    assert engine.times == 1
    assert [reason.code for found in lists for reason in found.reasons] == ["devices_unknown"] * 2


async def test_other_variables_and_other_servers_are_another_question(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    await engine.ask()
    await engine.ask({**ENV, "CUDA_VISIBLE_DEVICES": "1"})
    await engine.ask(ENV, "a:1")
    assert engine.times == 3


async def test_host_memory_is_always_there_once(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    for _ in range(2):
        assert [device.name for device in (await engine.ask()).devices] == ["CUDA0", "CPU"]


async def test_one_who_gives_up_leaves_the_others_their_answer(tmp_path: Path) -> None:
    engine = Counted(tmp_path, f"sleep 0.3; {GPU_LINE}")
    first = asyncio.create_task(engine.ask())
    second = asyncio.create_task(engine.ask())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).devices[0].name == "CUDA0"
