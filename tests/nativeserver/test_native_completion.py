"""Shapes of `/completion`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.native_completion import picked
from framework.nativeserver.probabilities import LOWEST_LOGPROB, record_json
from tests.nativeserver import drafting
from tests.nativeserver.generation_world import World, final, generation_world, partial

FINAL_KEYS = [
    "index",
    "content",
    "tokens",
    "id_slot",
    "stop",
    "model",
    "tokens_predicted",
    "tokens_evaluated",
    "generation_settings",
    "prompt",
    "has_new_line",
    "truncated",
    "stop_type",
    "stop_detail",
    "stopping_word",
    "tokens_cached",
    "timings",
    "reasoning_output_tokens",
    "visible_output_tokens",
    "loop_guard_triggered",
    "loop_guard_action",
    "loop_guard_reason",
    "speculation",
    "loop_guard",
]


def record(piece: bytes = b"a", probability: float = 1.0) -> Any:
    entry = SimpleNamespace(token=97, piece=piece, probability=probability)
    return SimpleNamespace(chosen=entry, top=[entry])


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with generation_world() as made:
        yield made


async def test_an_answer_has_its_members_in_order(world: World) -> None:
    answer = (await world.post("/completion", {"prompt": "ab", "seed": 3})).json()
    assert list(answer) == FINAL_KEYS
    assert (answer["content"], answer["prompt"], answer["model"]) == ("hello", "ab", "small")
    assert answer["generation_settings"]["seed"] == 3
    assert answer["timings"]["predicted_per_second"] == 100.0


async def test_tokens_are_counted_by_region(world: World) -> None:
    world.engine.results = lambda task: [
        final(
            task,
            n_decoded=11,
            n_reasoning_tokens=4,
            loop_guard=drafting.guard_report(reasoning_tokens=4, visible_tokens=6),
        )
    ]
    answer = (await world.post("/completion", {"prompt": "a"})).json()
    assert (answer["reasoning_output_tokens"], answer["visible_output_tokens"]) == (4, 6)
    assert answer["loop_guard"]["visible_tokens"] == 6


async def test_every_choice_shows_the_seed_it_had(world: World) -> None:
    answers = (await world.post("/completion", {"prompt": ["a", "b"], "n": 2, "seed": 7})).json()
    assert [answer["generation_settings"]["seed"] for answer in answers] == [7, 8, 7, 8]
    assert [answer["prompt"] for answer in answers] == ["a", "a", "b", "b"]


async def test_a_stream_ends_with_the_whole_object_and_without_probabilities(world: World) -> None:
    world.engine.results = lambda task: [
        partial(task, b"x", tokens=[120], records=[record()], n_decoded=1),
        final(task, n_decoded=1, records=[]),
    ]
    call = await world.post("/completion", {"prompt": "a", "stream": True, "n_probs": 1})
    first, last = call.events()
    assert list(first) == [
        "index",
        "content",
        "tokens",
        "stop",
        "id_slot",
        "tokens_predicted",
        "tokens_evaluated",
        "completion_probabilities",
    ]
    assert (first["content"], first["tokens"], first["stop"]) == ("x", [120], False)
    assert list(last) == FINAL_KEYS
    assert last["stop"] is True


async def test_progress_and_timings_come_where_they_are_wanted(world: World) -> None:
    progress = SimpleNamespace(total=9, cache=1, processed=5, time_ms=3)
    world.engine.results = lambda task: [
        partial(task, b"", is_progress=True, progress=progress, has_timings=True),
        final(task),
    ]
    call = await world.post("/completion", {"prompt": "a", "stream": True, "return_progress": True})
    first = call.events()[0]
    assert first["prompt_progress"] == {"total": 9, "cache": 1, "processed": 5, "time_ms": 3}
    assert first["timings"]["prompt_n"] == 8


async def test_probabilities_of_an_answer_are_there_when_asked_for(world: World) -> None:
    world.engine.results = lambda task: [final(task, b"a", records=[record()])]
    plain = (await world.post("/completion", {"prompt": "a"})).json()
    asked = (await world.post("/completion", {"prompt": "a", "n_probs": 1})).json()
    assert "completion_probabilities" not in plain
    entry = {"id": 97, "token": "a", "bytes": [97], "logprob": 0.0}
    assert asked["completion_probabilities"] == [{**entry, "top_logprobs": [entry]}]


def test_probabilities_after_sampling_have_other_names() -> None:
    entry = {"id": 97, "token": "a", "bytes": [97], "prob": 0.5}
    assert record_json(record(probability=0.5), post_sampling=True) == {**entry, "top_probs": [entry]}


def test_no_probability_is_the_lowest_float() -> None:
    assert record_json(record(probability=0.0), post_sampling=False)["logprob"] == LOWEST_LOGPROB
    assert json.loads(json.dumps(LOWEST_LOGPROB)) == LOWEST_LOGPROB


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        (b"", ""),
        ("é".encode()[:1], ""),
        ("aé".encode()[:-1], "a"),
        ("日".encode()[:2], ""),
        ("😀".encode()[:3], ""),
        ("日".encode(), "日"),
        (b"a\xffb", "a�b"),
        (b"\x80\x80\x80\x80", "����"),
    ],
)
def test_a_piece_is_cut_to_whole_characters_and_its_bytes_are_complete(piece: bytes, text: str) -> None:
    shape = record_json(record(piece), post_sampling=False)
    assert (shape["token"], bytes(shape["bytes"])) == (text, piece)


def test_members_are_picked_by_path() -> None:
    shape = {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert picked(shape, ["a", "b/c", "b/d/e", "x", "a/b", "b/x"]) == {"a": 1, "b/c": 2, "b/d/e": 3}


async def test_only_the_wanted_members_are_answered(world: World) -> None:
    body = {"prompt": "a", "seed": 1, "response_fields": ["content", "generation_settings/seed"]}
    assert (await world.post("/completion", body)).json() == {
        "content": "hello",
        "generation_settings/seed": 1,
    }


async def test_a_type_of_speculation_that_is_not_loaded_is_told(world: World) -> None:
    world.engine.speculation_ = drafting.speculation("ngram-mod", draft_simple="vocab-size")
    for body, reason in (
        ({}, "none-requested"),
        ({"speculative.type": "ngram-mod"}, "none-requested"),
        ({"speculative.type": "draft-mtp"}, "type-not-built"),
        ({"speculative": {"type": "draft-simple"}}, "vocab-size"),
    ):
        answer = (await world.post("/completion", {"prompt": "a", **body})).json()
        assert answer["speculation"]["fallback_reason"] == reason


async def test_drafts_and_the_guard_are_told(world: World) -> None:
    guard = drafting.guard_report(
        mode="force-close", triggered=True, action="force-close", reason="near", interventions=1
    )
    world.engine.results = lambda task: [
        final(task, n_decoded=106, speculation=drafting.drafted_report(), loop_guard=guard)
    ]
    answer = (await world.post("/completion", {"prompt": "a"})).json()
    assert list(answer) == FINAL_KEYS
    timings = {name: value for name, value in answer["timings"].items() if name.startswith("draft")}
    assert timings == {"draft_n": 96, "draft_n_accepted": 61, "draft_steps": 32, "draft_depth": 3}
    assert answer["speculation"]["fallback_reason"] == "no-nextn-layers"
    told = [answer[f"loop_guard_{name}"] for name in ("triggered", "action", "reason")]
    assert told == [True, "force-close", "near"]
    assert answer["loop_guard"]["interventions"] == 1


@pytest.mark.parametrize("body", [{}, {"prompt": None}, {"prompt": []}])
async def test_a_prompt_is_required(world: World, body: dict[str, Any]) -> None:
    call = await world.post("/completion", body)
    assert (call.status, call.error()["type"]) == (400, "invalid_request_error")
