"""Counting the tokens of a chat, also by engines without a route for it (08 §13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proxy.scripted_engine import Call
from tests.proxy.test_media import PNG
from tests.proxy.world import HELLO, World, model

COUNT = "/v1/chat/completions/input_tokens"


async def count(call: Call) -> None:
    await call.json(200, {"input_tokens": 7, "object": "response.input_tokens"})


async def lack(call: Call) -> None:
    await call.json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})


async def render(call: Call) -> None:
    await call.json(200, {"prompt": "a b"})


def tokens(found: Any) -> Any:
    async def play(call: Call) -> None:
        await call.json(200, {"tokens": found})

    return play


async def test_the_engine_counts(world: World) -> None:
    world.engine.default = count
    answer = await world.ask(COUNT, HELLO)
    assert answer.json() == {"object": "response.input_tokens", "input_tokens": 7}
    assert world.engine.calls[0].path == COUNT
    assert "stream" not in world.engine.calls[0].body


async def test_template_and_tokeniser_count_where_the_engine_has_no_route(world: World) -> None:
    world.engine.scripts = [lack, render, tokens([1, 2, 3])]
    assert (await world.ask(COUNT, HELLO)).json()["input_tokens"] == 3
    assert [call.path for call in world.engine.calls] == [COUNT, "/apply-template", "/tokenize"]
    assert world.engine.calls[2].body == {"content": "a b", "add_special": True}
    assert world.fleet.open_leases == 0


async def test_a_tokeniser_that_says_nothing_is_no_zero(world: World) -> None:
    world.engine.scripts = [lack, render, tokens(None)]
    call = await world.ask(COUNT, HELLO)
    assert (call.status, call.error()["code"]) == (502, "tokenizer_failed")


async def test_pictures_are_not_counted_as_text(world: World) -> None:
    world.declare(model("smol", projector=Path("/p.gguf")))
    world.fleet.vision = True
    world.engine.scripts = [lack]
    call = await world.ask(COUNT, {**HELLO, "image": PNG})
    assert (call.status, call.error()["code"]) == (400, "count_needs_text")


@pytest.mark.parametrize("path", [COUNT, COUNT[3:], f"/m/smol{COUNT[3:]}"])
async def test_the_route_has_its_twins(world: World, path: str) -> None:
    world.engine.default = count
    assert (await world.ask(path, HELLO)).json()["input_tokens"] == 7
