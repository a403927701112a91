"""Looking at an instance touches nothing and shows no folders (cases MD-01)."""

from __future__ import annotations

import pytest

from tests.proxy.scripted_engine import Call
from tests.proxy.world import World


async def say_props(call: Call) -> None:
    await call.json(200, {"model_path": "/home/u/models/m.gguf", "model_alias": "smol", "total_slots": 2})


@pytest.mark.parametrize("path", ["/props", "/m/gpt/props", "/props?model=gpt"])
async def test_how_a_model_runs(world: World, path: str) -> None:
    world.engine.default = say_props
    call = await world.ask(path, method="GET")
    alias = "gpt" if "gpt" in path else "smol"
    assert call.json() == {"model_path": "m.gguf", "model_alias": alias, "total_slots": 2}
    assert (world.fleet.acquired, world.records) == ([], [])


async def test_adapters_are_shown_without_their_folders(world: World) -> None:
    async def play(call: Call) -> None:
        await call.json(200, [{"id": 0, "path": "/home/u/a.gguf", "scale": 1.0}])

    world.engine.default = play
    assert (await world.ask("/lora-adapters", method="GET")).json() == [
        {"id": 0, "path": "a.gguf", "scale": 1.0}
    ]


@pytest.mark.parametrize("path", ["/props", "/slots", "/lora-adapters"])
async def test_a_model_that_is_not_loaded_stays_so(world: World, path: str) -> None:
    world.fleet.loaded = False
    call = await world.ask(path, method="GET")
    assert (call.status, call.error()["code"]) == (503, "model_not_loaded")
    assert world.fleet.acquired == []


async def test_what_an_engine_refuses_is_passed_on(world: World) -> None:
    async def refuse(call: Call) -> None:
        message = "This server does not support slots endpoint. Start it without `--no-slots`"
        await call.json(501, {"error": {"code": 501, "message": message, "type": "not_supported_error"}})

    world.engine.default = refuse
    call = await world.ask("/slots?fail_on_no_slot=1", method="GET")
    assert (call.status, call.error()["code"]) == (501, "not_supported")
    assert world.engine.calls[0].path == "/slots?fail_on_no_slot=1"


async def test_an_engine_that_says_nothing_is_not_waited_for(world: World) -> None:
    async def silent(call: Call) -> None:
        await call.closed.wait()

    world.limit(look_timeout_s=0.1)
    world.engine.default = silent
    call = await world.ask("/slots", method="GET")
    assert (call.status, call.error()["code"]) == (504, "connect_timeout")


@pytest.mark.parametrize("path", ["/props", "/lora-adapters"])
async def test_what_a_model_runs_with_cannot_be_changed(world: World, path: str) -> None:
    call = await world.ask(path, [])
    assert (call.status, call.headers["allow"]) == (405, "GET")
    assert "declared in the manifest" in call.error()["message"]


async def test_a_model_lists_itself_below_its_prefix(world: World) -> None:
    call = await world.ask("/m/gpt/v1/models", method="GET")
    assert [entry["id"] for entry in call.json()["data"]] == ["smol"]
