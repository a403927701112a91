"""A slot that works on for a client that left is noticed, and its process replaced (SP-07)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from framework.runtime.fleet import Fleet
from framework.runtime.stuck_slots import StuckSlots
from framework.values.instance import State
from framework.values.request import SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for

SOON_S = 2.0
BODY = {"messages": [{"role": "user", "content": "hello"}], "stream": True}


def watch_closely(fleet: Fleet) -> None:
    """Half a minute is long for a test."""
    fleet.stuck = StuckSlots(SOON_S)


async def leave_mid_stream(rig: FleetRig) -> None:
    """A client that reads the beginning of an answer and goes."""
    lease = await rig.fleet.acquire("m")
    async with aiohttp.ClientSession() as session:
        url = f"{lease.base_url}/v1/chat/completions"
        async with session.post(url, json=BODY, headers=dict(lease.headers)) as answer:
            await answer.content.readany()
            await asyncio.sleep(0.3)
    lease.release()


async def test_a_slot_that_nobody_uses_any_more_costs_the_process(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    watch_closely(rig.fleet)
    engine = fake_engine(keeps_lost_clients=True, tokens=100_000, token_interval_s=0.02)
    rig.declare(request_for(engine, tiny_gguf, spec=SpecPolicy("ngram")))
    first = await rig.until("m", State.READY)
    await leave_mid_stream(rig)
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    second = await rig.until("m", State.READY)
    assert (second.generation, second.pid != first.pid) == (2, True)
    reason = rig.event("exited").reason
    assert reason is not None
    assert reason.code == "slot_stuck"
    assert "without a new token (speculation: ngram-mod)" in reason.message


async def test_a_slot_whose_client_waits_is_left_alone(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    watch_closely(rig.fleet)
    engine = fake_engine(tokens=3, token_interval_s=2 * SOON_S)
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    async with aiohttp.ClientSession() as session:
        url = f"{lease.base_url}/v1/chat/completions"
        async with session.post(url, json=BODY, headers=dict(lease.headers)) as answer:
            text = await answer.text()
    lease.release()
    assert "[DONE]" in text
    assert rig.instance("m").generation == 1


async def test_a_client_that_waits_for_the_slot_does_not_hide_it(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    watch_closely(rig.fleet)
    engine = fake_engine(keeps_lost_clients=True, tokens=100_000, token_interval_s=0.02)
    rig.declare(request_for(engine, tiny_gguf, slots=1, live={"stall_timeout_s": 2 * SOON_S}))
    await rig.until("m", State.READY)
    await leave_mid_stream(rig)
    waiting = await rig.fleet.acquire("m")
    await rig.until("m", State.BACKOFF, State.PENDING, State.STARTING)
    waiting.release()
    assert (await rig.until("m", State.READY)).generation == 2
