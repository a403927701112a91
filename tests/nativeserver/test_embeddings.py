"""`/embeddings` and `/v1/embeddings`."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from framework.nativeserver.embeddings import MAX_NUMBERS
from tests.nativeserver.generation_world import World, failure, generation_world, result


def vector(task: Any) -> list[Any]:
    return [result(task, "embedding", embeddings=[[0.5, -0.25, float(task.index)]])]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world(embeddings=True) as made:
        made.engine.results = vector
        yield made


@pytest.mark.parametrize("path", ["/embeddings", "/v1/embeddings"])
async def test_a_server_without_embeddings_says_how_to_get_them(path: str) -> None:
    async with generation_world() as world:
        call = await world.post(path, {"input": "a"})
        assert (call.status, call.error()["type"]) == (501, "not_supported_error")
        assert "--embeddings" in call.error()["message"]


async def test_the_openai_form(world: World) -> None:
    answer = (await world.post("/v1/embeddings", {"input": ["ab", "c"], "model": "m"})).json()
    assert answer == {
        "model": "m",
        "object": "list",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
        "data": [
            {"embedding": [0.5, -0.25, 0.0], "index": 0, "object": "embedding"},
            {"embedding": [0.5, -0.25, 1.0], "index": 1, "object": "embedding"},
        ],
    }


async def test_base64_is_little_endian_floats(world: World) -> None:
    answer = (await world.post("/v1/embeddings", {"input": "a", "encoding_format": "base64"})).json()
    (entry,) = answer["data"]
    assert entry["encoding_format"] == "base64"
    assert struct.unpack("<3f", base64.b64decode(entry["embedding"])) == (0.5, -0.25, 0.0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embeddings", {"input": "a"}),
        ("/embeddings", {"content": "a"}),
        ("/v1/embeddings", {"content": "a"}),
    ],
)
async def test_the_native_form(world: World, path: str, body: dict[str, Any]) -> None:
    assert (await world.post(path, body)).json() == [{"index": 0, "embedding": [[0.5, -0.25, 0.0]]}]


async def test_inputs_may_be_lists_of_tokens(world: World) -> None:
    await world.post("/v1/embeddings", {"input": [[5, 6], "a"]})
    assert [task.tokens for task in world.engine.tasks] == [[5, 6], [97]]
    assert {task.kind for task in world.engine.tasks} == {"embedding"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({}, "input", id="nothing"),
        pytest.param({"input": ""}, "empty", id="empty"),
        pytest.param({"input": ["a", ""]}, "empty", id="one empty"),
        pytest.param({"input": [[]]}, "empty", id="no tokens"),
        pytest.param({"input": "a", "encoding_format": "hex"}, "encoding_format", id="encoding"),
        pytest.param({"input": "a", "encoding_format": ["float"]}, "encoding_format", id="encoding a list"),
        pytest.param({"input": "a", "embd_normalize": "x"}, "embd_normalize", id="norm"),
        pytest.param({"input": {"a": 1}}, "input", id="object"),
    ],
)
async def test_a_broken_body_is_refused(world: World, body: dict[str, Any], expected: str) -> None:
    call = await world.post("/v1/embeddings", body)
    assert call.status == 400
    assert expected in call.error()["message"]
    assert world.engine.tasks == []


async def test_the_norm_reaches_the_core(world: World) -> None:
    await world.post("/v1/embeddings", {"input": "a", "embd_normalize": -1})
    await world.post("/v1/embeddings", {"input": "a"})
    assert [task.embd_normalize for task in world.engine.tasks] == [-1, 2]


async def test_without_pooling_only_the_native_form_exists(world: World) -> None:
    world.engine.facts_.pooling = 0
    world.engine.results = lambda task: [result(task, "embedding", embeddings=[[1.0], [2.0]])]
    assert (await world.post("/v1/embeddings", {"input": "ab"})).status == 400
    native = await world.post("/embeddings", {"input": "ab"})
    assert native.json() == [{"index": 0, "embedding": [[1.0], [2.0]]}]


async def test_an_input_that_is_too_long_is_the_engines_error(world: World) -> None:
    world.engine.results = lambda task: [failure(task, "server", b"too large for the physical batch")]
    call = await world.post("/v1/embeddings", {"input": "a"})
    assert (call.status, call.error()["message"]) == (500, "too large for the physical batch")


async def test_a_client_that_leaves_ends_its_tasks(world: World) -> None:
    world.engine.results = lambda task: []
    call = world.start("/v1/embeddings", {"input": ["a", "b"]})
    await world.submitted(2)
    call.gone.set()
    await call.finished()
    assert world.engine.cancelled == [1, 2]


async def test_an_answer_of_too_many_numbers_is_refused_before_it_is_made(world: World) -> None:
    world.engine.meta_.n_embd = MAX_NUMBERS // 8
    assert (await world.post("/embeddings", {"input": ["a"] * 8})).status == 200
    n_tasks = len(world.engine.tasks)
    assert (await world.post("/embeddings", {"input": ["a"] * 9})).status == 400
    world.engine.facts_.pooling = 0
    call = await world.post("/embeddings", {"input": "nine char"})
    assert (call.status, len(world.engine.tasks)) == (400, n_tasks)
    assert str(MAX_NUMBERS) in call.error()["message"]
