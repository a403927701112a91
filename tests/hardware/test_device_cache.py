"""Device lists that starts share, and for how long (04 §2.5)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from framework.hardware.device_cache import FRESH_S, LASTING_S, DeviceCache
from framework.hardware.devices import DeviceList
from framework.hardware.remote import SERVER_TIMEOUT_S
from framework.values.engine import EngineBinary
from tests.engines.programs import program
from tests.support.waiting import eventually

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

    def __init__(self, directory: Path, body: str, *, server_timeout_s: float = SERVER_TIMEOUT_S) -> None:
        self._asked = directory / "asked"
        self.binary: EngineBinary = program(directory, f"echo x >> {self._asked}; {body}")
        self.clock = Clock()
        self.cache = DeviceCache(clock=self.clock, server_timeout_s=server_timeout_s)

    async def ask(self, environ: dict[str, str] = ENV, *rpc: str) -> DeviceList:
        return await self.cache.get(self.binary, environ, rpc=rpc)

    @property
    def times(self) -> int:
        return len(self._asked.read_text().splitlines()) if self._asked.exists() else 0


async def test_starts_that_come_together_share_one_list(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    lists = await asyncio.gather(*(engine.ask() for _ in range(5)))
    assert engine.times == 1
    assert {found.devices[0].name for found in lists} == {"CUDA0"}


async def test_one_question_without_an_answer_takes_no_gpus_away(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    engine = Counted(tmp_path, f"[ -e {broken} ] && exit 1; {GPU_LINE}")
    await engine.ask()
    broken.touch()
    engine.clock.now_s = FRESH_S
    found = await engine.ask()
    assert [device.name for device in found.devices] == ["CUDA0", "CPU"]
    assert [reason.code for reason in found.reasons] == ["devices_as_before"]


async def test_what_is_free_is_asked_anew_after_some_seconds(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    await engine.ask()
    engine.clock.now_s = FRESH_S
    await engine.ask()
    assert engine.times == 2


async def test_that_there_is_no_gpu_holds_for_longer(tmp_path: Path) -> None:
    engine = Counted(tmp_path, "true")
    await engine.ask()
    engine.clock.now_s = LASTING_S - 1
    await engine.ask()
    assert engine.times == 1
    engine.clock.now_s = LASTING_S
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


SERVER = """[ "$1" = --rpc ] && echo "  RPC0: $2 (100 MiB, 100 MiB free)"; exit 0"""


async def test_a_server_that_an_instance_holds_is_not_asked_and_is_as_it_was(tmp_path: Path) -> None:
    engine = Counted(tmp_path, SERVER)
    await engine.ask(ENV, "a:1")
    assert engine.times == 2
    engine.cache.held = lambda: {"a:1"}
    engine.clock.now_s = FRESH_S
    found = await engine.cache.get_anew(engine.binary, ENV, rpc=("a:1",))
    assert engine.times == 3  # this machine alone
    assert [device.name for device in found.devices] == ["RPC0", "CPU"]


async def test_a_server_that_was_held_from_the_start_is_not_known(tmp_path: Path) -> None:
    engine = Counted(tmp_path, SERVER)
    engine.cache.held = lambda: {"a:1"}
    found = await engine.ask(ENV, "a:1")
    reason = found.why_not("a:1")
    assert reason is not None
    assert reason.code == "rpc_busy"


async def test_each_server_is_a_question_of_its_own(tmp_path: Path) -> None:
    engine = Counted(tmp_path, SERVER)
    await engine.ask(ENV, "a:1")
    await engine.ask(ENV, "b:1", "a:1")
    assert engine.times == 3


async def test_a_server_in_front_leaves_the_others_their_names(tmp_path: Path) -> None:
    engine = Counted(tmp_path, SERVER)
    await engine.ask(ENV, "a:1")
    for _ in range(2):  # for a model of its own servers as well
        found = await engine.ask(ENV, "b:1", "a:1")
        names = [(device.name, device.endpoint) for device in found.devices[:2]]
        assert names == [("RPC1", "b:1"), ("RPC0", "a:1")]


async def test_why_a_server_gave_nothing_is_known_until_it_does(tmp_path: Path) -> None:
    away = tmp_path / "away"
    engine = Counted(tmp_path, f"[ -e {away} ] && exit 1; {SERVER}")
    assert engine.cache.why_not("a:1") is None
    away.touch()
    found = await engine.ask(ENV, "a:1")
    assert engine.cache.why_not("a:1") == found.why_not("a:1") is not None
    away.unlink()
    await engine.cache.get_anew(engine.binary, ENV, rpc=("a:1",))
    assert engine.cache.why_not("a:1") is None


async def test_a_server_that_hung_is_left_alone_however_fresh_an_answer_is_wanted(tmp_path: Path) -> None:
    engine = Counted(tmp_path, "[ $1 = --rpc ] && exec sleep 60", server_timeout_s=0.3)
    await engine.ask(ENV, "a:1")
    asked = engine.times
    engine.clock.now_s = LASTING_S - 1
    found = await engine.cache.get(engine.binary, ENV, rpc=("a:1",), max_age_s=LASTING_S)
    assert engine.times == asked
    assert found.why_not("a:1") is not None


async def test_an_answer_may_be_as_old_as_is_said(tmp_path: Path) -> None:
    engine = Counted(tmp_path, GPU_LINE)
    await engine.ask()
    engine.clock.now_s = 2.0
    await engine.cache.get(engine.binary, ENV, max_age_s=2.5)
    assert engine.times == 1
    await engine.cache.get(engine.binary, ENV, max_age_s=1.5)
    assert engine.times == 2


async def test_a_start_waits_until_no_question_is_on_its_way(tmp_path: Path) -> None:
    answered = tmp_path / "answered"
    engine = Counted(tmp_path, f'[ "$1" = --rpc ] && sleep 0.3 && touch {answered}; exit 0')
    asking = asyncio.create_task(engine.ask(ENV, "a:1"))
    await eventually(lambda: engine.times == 2)
    await engine.cache.until_quiet({"a:1", "never asked"})
    assert answered.exists()
    await asking
