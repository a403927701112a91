"""Bodies of many small parts are refused before anything goes through them; ordinary big ones are read."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from framework.nativeserver import anthropic, fields, responses, speculation_fields
from framework.nativeserver.errors import ApiError
from framework.nativeserver.fields import MAX_RESPONSE_FIELD_NAME, MAX_RESPONSE_FIELDS, read_request
from framework.nativeserver.json_bounds import (
    MOST_CONTAINERS,
    MOST_FIELDS,
    MOST_MEMBERS,
    MOST_VALUES,
    JsonTally,
)
from tests.nativeserver.generation_world import generation_world
from tests.nativeserver.small_world import SmallWorld, small_world

MIB = 2**20


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the bodies that reached the parser."""
    sizes: list[int] = []
    inner = orjson.loads

    def loads(raw: bytes) -> Any:
        sizes.append(len(raw))
        return inner(raw)

    monkeypatch.setattr(orjson, "loads", loads)
    return sizes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b'{"x":[' + b"[]," * MOST_CONTAINERS + b"1]}", "lists and objects", id="lists"),
        pytest.param(b'{"x":[' + b"{}," * MOST_CONTAINERS + b"1]}", "lists and objects", id="objects"),
        pytest.param(b'{"x":{' + b'"a":1,' * MOST_MEMBERS + b'"b":1}}', "names", id="members"),
        pytest.param(b'{"prompt":[' + b'"",' * (MOST_VALUES + 1) + b'""]}', "values", id="empty prompts"),
        pytest.param(b'{"prompt":[' + b"1," * (MOST_VALUES + 1) + b"1]}", "values", id="token ids"),
    ],
)
async def test_many_small_parts_are_refused_before_the_parser(
    parsed: list[int], content: bytes, told: str
) -> None:
    async with small_world() as world:
        answer = await world.client.post("/completion", content=content)
        assert answer.status_code == 400
        assert told in answer.json()["error"]["message"]
        assert parsed == []
        await world.post("/tokenize", {"content": "a"})
        assert len(parsed) == 1


async def test_a_client_may_send_the_rest_of_what_is_refused() -> None:
    sent = 0

    async def pieces() -> Any:
        nonlocal sent
        for _ in range(64):
            sent += 1
            yield b"[" * (MOST_CONTAINERS // 8)

    async with small_world() as world:
        assert (await world.client.post("/completion", content=pieces())).status_code == 400
        assert world.app.state.services.bytes_being_read == 0
    assert sent == 64


@pytest.mark.parametrize(
    ("sign", "most"),
    [(b"[", MOST_CONTAINERS), (b"{", MOST_CONTAINERS), (b":", MOST_MEMBERS), (b",", MOST_VALUES)],
)
def test_the_parts_of_a_body_add_up(sign: bytes, most: int) -> None:
    tally, faults = JsonTally(), []
    for chunk in (*[sign * (most // 4)] * 4, b"x" + sign, sign):
        tally.add(chunk)
        faults.append("" if tally.fault is None else tally.fault.message)
    assert faults[:4] == [""] * 4
    assert all(str(most) in fault for fault in faults[4:])


@pytest.mark.parametrize("name", ["k", "speculative.k"])
async def test_the_fields_of_a_body_are_bounded(name: str) -> None:
    async with small_world() as world:
        body = {f"{name}{number}": 1 for number in range(MOST_FIELDS + 1)}
        answer = await world.post("/completion", body)
        assert answer.status_code == 400
        assert f"at most {MOST_FIELDS}" in answer.json()["error"]["message"]


class Uncounted(dict[str, Any]):
    """An object of any size: it can be asked for a member, and not be gone through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("somebody goes through the members")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_nobody_goes_through_the_members_of_speculative() -> None:
    nested = Uncounted(n_max=2, controller="profit", unknown=1)
    body = Uncounted({"speculative": nested, "speculative.n_max": 3, "speculative.unknown": 1})
    assert speculation_fields._given(body) == {"speculative.n_max": 3, "speculative.controller": "profit"}


async def test_the_names_of_response_fields_are_bounded_and_read_once() -> None:
    async with generation_world() as world:
        wishes = read_request({"response_fields": ["b", "a", "b", "a/c"]}, world.services)
        assert wishes.response_fields == ("b", "a", "a/c")
        for names in (["b"] * (MAX_RESPONSE_FIELDS + 1), ["a/" * MAX_RESPONSE_FIELD_NAME]):
            with pytest.raises(ApiError, match="response_fields"):
                fields.read_request({"response_fields": names}, world.services)


@pytest.mark.parametrize(
    ("path", "name", "entry"),
    [
        ("/v1/responses", "input", {"role": "user", "content": "a"}),
        ("/v1/messages", "messages", {"role": "user", "content": "a"}),
    ],
)
async def test_long_conversations_are_converted_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, path: str, name: str, entry: dict[str, Any]
) -> None:
    threads: set[threading.Thread] = set()
    module: Any = responses if path == "/v1/responses" else anthropic
    inner = module.chat_body

    def noted(body: Any) -> Any:
        threads.add(threading.current_thread())
        return inner(body)

    monkeypatch.setattr(module, "chat_body", noted)
    async with small_world() as world:
        world.core.results = lambda task: []
        await world.post(path, {name: [entry] * 40_000, "n": 2})
    assert threads
    assert threading.main_thread() not in threads


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for level in range(levels):
        schema = {"type": "object", "properties": {f"a{level}": schema, "b": {"type": "number"}}}
    return schema


def _tools() -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": f"tool_{number}", "parameters": _nested(6)}}
        for number in range(200)
    ]


async def _template_of(world: SmallWorld, body: dict[str, Any]) -> Any:
    return await world.post("/apply-template", {"messages": [{"role": "user", "content": "hi"}], **body})


async def test_ordinary_big_requests_are_read() -> None:
    async with small_world() as world:
        tools = await _template_of(world, {"tools": _tools()})
        assert (tools.status_code, tools.json()["prompt"]) == (200, "hi")
        chat = [{"role": "user", "content": "a"}] * 20_000
        assert (await _template_of(world, {"messages": chat})).json()["prompt"] == "a" * 20_000
        ids = await world.post("/detokenize", {"tokens": [97] * 200_000})
        assert ids.json()["content"] == "a" * 200_000


async def test_a_large_image_is_read_and_then_refused_for_what_it_is() -> None:
    image = base64.b64encode(bytes(range(256)) * (15 * MIB // 256)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    body = json.dumps({"messages": [{"role": "user", "content": [part]}]})
    assert len(body) > 20_000_000
    async with small_world() as world:
        answer = await world.client.post("/v1/chat/completions", content=body)
        assert answer.status_code == 400
        assert "image input is not supported" in answer.json()["error"]["message"]
