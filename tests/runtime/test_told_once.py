"""What is refused without a process is told once; requests get the same answer until something changes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from framework.runtime.lease import LeaseRefused
from framework.runtime.refusals import RETRY_UNKNOWN_S
from framework.values.event import Event
from framework.values.instance import State
from framework.values.request import ModelRequest, PoolLimits
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, changed, request_for
from tests.support.fakes import FakeEngine
from tests.support.sized_models import write_large_model
from tests.support.waiting import eventually

# A context of 8192 tokens takes 1 GiB, computing and the runtime some more.
TOKENS = 8192
POOL = PoolLimits("gpu", ("auto",), offload="forbid")
WAIT_S = 60.0

Declare = Callable[..., ModelRequest]


def card(free_mib: int) -> list[str]:
    return [f"Vulkan0: a card (4000 MiB, {free_mib} MiB free)"]


@pytest.fixture
def engine(fake_engine: MakeFake) -> FakeEngine:
    """Sees one card, most of which another program has."""
    return fake_engine(devices=card(1000))


@pytest.fixture
def model(engine: FakeEngine, tmp_path: Path) -> Declare:
    path = write_large_model(tmp_path / "large.gguf")

    def make(name: str, *, pool: PoolLimits = POOL, n_ctx: int = TOKENS, **live: object) -> ModelRequest:
        settings = {"load": "on-demand", **live}
        return request_for(engine, path, name, live=settings, n_ctx=n_ctx, slots=1, pool=pool)

    return make


async def refusal(rig: FleetRig, name: str) -> LeaseRefused:
    with pytest.raises(LeaseRefused) as refused:
        await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)
    return refused.value


async def served(rig: FleetRig, name: str) -> None:
    (await asyncio.wait_for(rig.fleet.acquire(name), WAIT_S)).release()


def told(rig: FleetRig) -> list[Event]:
    return rig.events.recent(model="m", limit=1000)


def pass_time(rig: FleetRig, seconds: float) -> None:
    rig.shop.ledger.clock = lambda: time.monotonic() + seconds


async def test_a_refusal_is_told_once_however_many_ask(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("m"))
    first = await refusal(rig, "m")
    events, tried = told(rig), rig.instance("m").generation
    assert [event.kind for event in events].count("refused") == 1
    for _ in range(20):
        assert (await refusal(rig, "m")).message == first.message
    assert first.code == "no_memory"
    assert first.retry_after_s == RETRY_UNKNOWN_S
    assert told(rig) == events
    assert rig.instance("m").generation == tried


async def test_once_clients_were_told_to_come_back_it_is_tried_and_not_told_again(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    rig.declare(model("m"))
    await refusal(rig, "m")
    events, tried = told(rig), rig.instance("m").generation
    for later in range(1, 4):
        pass_time(rig, later * (RETRY_UNKNOWN_S + 1))
        engine.rescript(devices=card(1000 + later))
        assert (await refusal(rig, "m")).code == "no_memory"
        assert rig.instance("m").generation == tried + later
    assert told(rig) == events
    assert rig.instance("m").state is State.FAILED


async def test_memory_that_other_programs_gave_back_is_found_then(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    rig.declare(model("m"))
    await refusal(rig, "m")
    engine.rescript(devices=card(4000))
    # A list of devices holds for some seconds as well.
    async with asyncio.timeout(WAIT_S):
        for later in itertools.count(1):
            pass_time(rig, later * (RETRY_UNKNOWN_S + 1))
            with contextlib.suppress(LeaseRefused):
                await served(rig, "m")
                break
            await asyncio.sleep(0.5)
    tried = [event for event in told(rig) if event.data["instance"] == rig.instance("m").instance]
    assert [event.data["to"] for event in tried if event.kind == "state"] == [
        *("fetching", "planning", "starting", "ready"),
    ]


async def test_an_edit_is_tried_at_once(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("m"))
    await refusal(rig, "m")
    rig.declare(model("m", n_ctx=256, pool=replace(POOL, offload="allow")))
    await served(rig, "m")


async def test_another_refusal_is_told(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("m"))
    await refusal(rig, "m")
    rig.declare(model("m", n_ctx=2 * TOKENS))
    await refusal(rig, "m")
    assert [event.kind for event in told(rig)].count("refused") == 2


async def test_memory_of_another_model_is_used_as_soon_as_it_is_free(
    rig: FleetRig, model: Declare, engine: FakeEngine
) -> None:
    engine.rescript(devices=card(4000))
    rig.declare(model("holder", n_ctx=2 * TOKENS, pin=True), model("m", n_ctx=2 * TOKENS))
    await served(rig, "holder")
    assert (await refusal(rig, "m")).reason is not None
    events = told(rig)
    await refusal(rig, "m")
    assert told(rig) == events
    rig.fleet.unload("holder", by="test")
    await rig.until("holder", State.STOPPED)
    await served(rig, "m")


async def test_a_missing_file_is_told_once_and_used_when_it_comes(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    late = tmp_path / "late" / "model.gguf"
    late.parent.mkdir()
    request = request_for(fake_engine(), tiny_gguf, live={"load": "on-demand"})
    rig.declare(changed(request, source=replace(request.source, path=late)))
    await refusal(rig, "m")
    events = told(rig)
    for _ in range(5):
        assert (await refusal(rig, "m")).code == "model_load_failed"
    assert told(rig) == events
    late.write_bytes(tiny_gguf.read_bytes())
    await served(rig, "m")


async def test_a_command_is_told_what_came_of_it(rig: FleetRig, model: Declare) -> None:
    rig.declare(model("m"))
    await refusal(rig, "m")
    rig.fleet.load("m", by="test")
    await eventually(lambda: [event.kind for event in told(rig)].count("refused") == 2, WAIT_S)
