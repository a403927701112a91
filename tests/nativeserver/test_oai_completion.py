"""Shapes of `/v1/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.usage import usage_json
from tests.nativeserver.generation_world import World, final, generation_world, new_task, partial


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        yield made


async def test_an_answer_has_its_members_in_order(world: World) -> None:
    answer = (await world.post("/v1/completions", {"prompt": "ab", "model": "other"})).json()
    assert list(answer) == [
        "choices",
        "created",
        "model",
        "system_fingerprint",
        "object",
        "usage",
        "id",
        "timings",
    ]
    assert answer["choices"] == [{"text": "hello", "index": 0, "logprobs": None, "finish_reason": "stop"}]
    assert (answer["object"], answer["model"]) == ("text_completion", "small")
    assert answer["id"] == world.engine.tasks[0].completion_id


@pytest.mark.parametrize(("stop", "reason"), [("eos", "stop"), ("word", "stop"), ("limit", "length")])
async def test_why_a_choice_ended(world: World, stop: str, reason: str) -> None:
    world.engine.results = lambda task: [final(task, stop=stop)]
    answer = (await world.post("/v1/completions", {"prompt": "a"})).json()
    assert answer["choices"][0]["finish_reason"] == reason


async def test_choices_of_several_prompts_are_in_one_object_and_all_are_counted(world: World) -> None:
    world.engine.results = lambda task: [
        final(task, str(task.index).encode(), n_decoded=5 + task.index, n_prompt_tokens=10, n_prompt_cached=3)
    ]
    answer = (await world.post("/v1/completions", {"prompt": ["a", "b"], "n": 2})).json()
    assert [(choice["text"], choice["index"]) for choice in answer["choices"]] == [
        ("0", 0),
        ("1", 1),
        ("2", 2),
        ("3", 3),
    ]
    assert answer["usage"] == {
        "completion_tokens": 26,
        "prompt_tokens": 20,
        "total_tokens": 46,
        "prompt_tokens_details": {"cached_tokens": 6},
        "completion_tokens_details": {"reasoning_tokens": 0, "accepted_prediction_tokens": 0},
    }


def test_the_prompt_of_two_choices_is_counted_once() -> None:
    finals = [final(new_task(), n_decoded=count, n_prompt_tokens=10) for count in (5, 7)]
    usage = usage_json(finals)
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 12, 22)


async def test_log_probabilities_stand_with_their_choice(world: World) -> None:
    entry = SimpleNamespace(token=97, piece=b"a", probability=1.0)
    world.engine.results = lambda task: [final(task, records=[SimpleNamespace(chosen=entry, top=[])])]
    answer = (await world.post("/v1/completions", {"prompt": "a", "logprobs": 1})).json()
    assert answer["choices"][0]["logprobs"]["content"][0]["token"] == "a"
    assert world.engine.tasks[0].params.n_probs == 1


async def test_a_stream_tells_the_usage_of_each_choice_at_its_end(world: World) -> None:
    world.engine.results = lambda task: [partial(task, b"x"), final(task, n_decoded=1)]
    call = await world.post("/v1/completions", {"prompt": "a", "stream": True})
    first, last = call.events()
    assert list(first) == ["choices", "created", "model", "system_fingerprint", "object", "id"]
    assert first["choices"] == [{"text": "x", "index": 0, "logprobs": None, "finish_reason": None}]
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["completion_tokens"] == 1
    assert "timings" in last
    assert first["id"] == last["id"]


async def test_the_usage_that_was_asked_for_is_a_chunk_of_its_own(world: World) -> None:
    world.engine.results = lambda task: [partial(task, b"x"), final(task, n_decoded=2, n_prompt_tokens=10)]
    body = {"prompt": "a", "n": 2, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = (await world.post("/v1/completions", body)).events()
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (10, 4)
    assert not any("usage" in chunk for chunk in chunks)


async def test_the_engines_report_is_for_those_who_ask(world: World) -> None:
    for body, keys in (
        ({}, set()),
        ({"engine_report": True}, {"engine_report"}),
        ({"verbose": True}, {"engine_report", "__verbose"}),
    ):
        answer = (await world.post("/v1/completions", {"prompt": "a", **body})).json()
        assert {"engine_report", "__verbose"} & set(answer) == keys
    assert list(answer["engine_report"]) == [
        "speculation",
        "loop_guard",
        "stop_detail",
        "reasoning_output_tokens",
        "visible_output_tokens",
    ]
    assert answer["__verbose"]["content"] == "hello"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"echo": True}, "echo"),
        ({"echo": "x"}, "echo"),
        ({"suffix": "x"}, "suffix"),
        ({"suffix": 5}, "suffix"),
        ({"best_of": 3}, "best_of"),
    ],
)
async def test_what_would_change_the_answer_and_is_not_done_is_refused(
    world: World, body: dict[str, Any], name: str
) -> None:
    call = await world.post("/v1/completions", {"prompt": "a", **body})
    assert call.status == 400
    assert name in call.error()["message"]


@pytest.mark.parametrize("body", [{"echo": False, "suffix": "", "best_of": 1}, {"best_of": 2, "n": 2}])
async def test_what_changes_nothing_is_accepted(world: World, body: dict[str, Any]) -> None:
    assert (await world.post("/v1/completions", {"prompt": "a", **body})).status == 200
