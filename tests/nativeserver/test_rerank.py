"""`/rerank`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.nativeserver.generation_world import World, generation_world, result

SCORES = (0.1, 0.9, 0.5)
DOCUMENTS = ["x", "y", "z"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world(reranking=True) as made:
        made.engine.facts_.pooling = 4
        made.engine.results = lambda task: [result(task, "rerank", score=SCORES[task.index])]
        yield made


@pytest.mark.parametrize(("reranking", "pooling"), [(False, 4), (True, 1)])
async def test_a_server_that_does_not_rank_says_so(reranking: bool, pooling: int) -> None:
    async with generation_world(reranking=reranking) as world:
        world.engine.facts_.pooling = pooling
        call = await world.post("/rerank", {"query": "a", "documents": ["b"]})
        assert (call.status, call.error()["type"]) == (501, "not_supported_error")


async def test_documents_come_in_the_order_of_their_scores(world: World) -> None:
    answer = (await world.post("/rerank", {"query": "ab", "documents": DOCUMENTS})).json()
    assert answer == {
        "model": "small",
        "object": "list",
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
        "results": [
            {"index": 1, "relevance_score": 0.9},
            {"index": 2, "relevance_score": 0.5},
            {"index": 0, "relevance_score": 0.1},
        ],
    }


async def test_a_model_that_is_named_is_told(world: World) -> None:
    body = {"query": "a", "documents": DOCUMENTS, "model": "mine"}
    assert (await world.post("/rerank", body)).json()["model"] == "mine"
    assert (await world.post("/rerank", {**body, "model": 5})).status == 400


@pytest.mark.parametrize(("top_n", "count"), [(0, 0), (2, 2), (9, 3), (None, 3)])
async def test_only_the_best_are_answered(world: World, top_n: int | None, count: int) -> None:
    answer = await world.post("/rerank", {"query": "a", "documents": DOCUMENTS, "top_n": top_n})
    assert len(answer.json()["results"]) == count


async def test_texts_select_the_bare_list(world: World) -> None:
    answer = await world.post("/rerank", {"query": "a", "texts": DOCUMENTS, "top_n": 1})
    assert answer.json() == [{"index": 1, "score": 0.9}]
    answer = await world.post("/rerank", {"query": "a", "texts": DOCUMENTS, "top_n": 1, "return_text": True})
    assert answer.json() == [{"index": 1, "score": 0.9, "text": "y"}]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"documents": ["a"]}, id="no query"),
        pytest.param({"query": 5, "documents": ["a"]}, id="query a number"),
        pytest.param({"query": "a"}, id="no documents"),
        pytest.param({"query": "a", "documents": []}, id="empty"),
        pytest.param({"query": "a", "documents": "b"}, id="a text"),
        pytest.param({"query": "a", "documents": ["b", 5]}, id="a number in it"),
        pytest.param({"query": "a", "documents": ["b"], "top_n": -1}, id="top_n"),
        pytest.param({"query": "a", "documents": ["b"], "top_n": "1"}, id="top_n a text"),
        pytest.param({"query": "a", "documents": ["b"] * 10_000}, id="too many"),
    ],
)
async def test_a_broken_body_is_refused(world: World, body: dict[str, Any]) -> None:
    assert (await world.post("/rerank", body)).status == 400
    assert world.engine.tasks == []


@pytest.mark.parametrize(
    ("adds", "expected"),
    [
        ({}, [113, 100]),
        ({"adds_bos": True, "adds_eos": True, "adds_sep": True}, [1, 113, 2, 3, 100, 2]),
        ({"adds_bos": True, "adds_eos": True, "eos": -1}, [1, 113, 3, 100, 3]),
        ({"adds_sep": True}, [113, 3, 100]),
    ],
)
async def test_a_pair_has_the_special_tokens_of_its_vocabulary(
    world: World, adds: dict[str, Any], expected: list[int]
) -> None:
    vars(world.engine.meta_).update(adds)
    await world.post("/rerank", {"query": "q", "documents": ["d"]})
    assert world.engine.tasks[0].tokens == expected


async def test_a_template_is_filled_once(world: World) -> None:
    world.engine.meta_.rerank_template = "Q:{query} D:{document}"
    await world.post("/rerank", {"query": "{document}", "documents": ["{query}"]})
    assert bytes(world.engine.tasks[0].tokens) == b"Q:{document} D:{query}"
