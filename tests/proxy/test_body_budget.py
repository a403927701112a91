"""Memory for all bodies together: large ones that nobody finishes leave room for ordinary ones."""

from __future__ import annotations

import asyncio

import pytest

from framework.proxy.body_budget import FREE_BYTES, LARGEST_BODIES, BodyBudget
from framework.proxy.errors import ProxyError
from framework.values.manifest import ServerSettings
from tests.proxy.asgi_client import AsgiCall
from tests.proxy.scripted_engine import hang
from tests.proxy.world import HELLO, World, model
from tests.support.waiting import eventually

MIB = 2**20
CHAT = "/v1/chat/completions"


def unfinished(world: World, size_bytes: int) -> AsgiCall:
    """A body of which so much has come, and no end."""
    return world.call(CHAT, chunks=[b" " * size_bytes], whole=False)


async def full(world: World) -> list[AsgiCall]:
    """Unfinished bodies that leave no room."""
    world.declare(model("smol"), server=ServerSettings(max_body_bytes=MIB))
    calls = [unfinished(world, MIB) for _ in range(LARGEST_BODIES)]
    await eventually(lambda: world.services.bodies.held_bytes == LARGEST_BODIES * (MIB - FREE_BYTES))
    return calls


async def leave(calls: list[AsgiCall]) -> None:
    for call in calls:
        call.gone.set()
    await asyncio.gather(*[call.finished() for call in calls])


async def test_a_large_body_beyond_the_budget_is_refused_for_now(world: World) -> None:
    calls = await full(world)
    refused = await world.ask(CHAT, chunks=[b" " * MIB, b"{}"])
    assert (refused.status, refused.error()["code"]) == (503, "server_busy")
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["connection"] == "close"
    await leave(calls)


async def test_an_ordinary_chat_is_served_all_the_same(world: World) -> None:
    calls = await full(world)
    assert (await world.chat()).status == 200
    await leave(calls)


async def test_who_leaves_gives_the_memory_back(world: World) -> None:
    await leave(await full(world))
    assert world.services.bodies.held_bytes == 0
    assert (await world.ask(CHAT, chunks=[b" " * (MIB - 100), b"{}"])).status != 503


async def test_a_request_that_works_still_holds_its_body(world: World) -> None:
    world.engine.default = hang
    call = world.start_chat(padding="x" * MIB)
    await eventually(lambda: world.engine.calls)
    assert world.services.bodies.held_bytes > MIB - FREE_BYTES
    await leave([call])
    assert world.services.bodies.held_bytes == 0


async def test_a_finished_request_holds_nothing(world: World) -> None:
    assert (await world.ask(CHAT, {**HELLO, "padding": "x" * MIB})).status == 200
    assert world.services.bodies.held_bytes == 0


def test_a_refused_share_keeps_what_it_had() -> None:
    budget = BodyBudget()
    share = budget.share()
    share.grow(FREE_BYTES + 40, largest_bytes=10)
    with pytest.raises(ProxyError):
        share.grow(FREE_BYTES + 41, largest_bytes=10)
    assert budget.held_bytes == 40
    share.give_back()
    assert budget.held_bytes == 0
