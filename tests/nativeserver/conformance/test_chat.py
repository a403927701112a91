"""Chats, whole and streamed, and the interfaces that are made of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import COLOURS, PERSON, YES_NO, greedy
from tests.support.engine_pair import EnginePair

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

SYSTEM = {"role": "system", "content": "Be brief."}
CHATS: dict[str, dict[str, Any]] = {
    "plain": {},
    "to-the-end": {"max_tokens": 200},
    "one-token": {"max_completion_tokens": 1},
    "stop-string": {"stop": ","},
    "logprobs": {"logprobs": True, "top_logprobs": 3},
    "grammar": {"grammar": YES_NO},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"schema": PERSON}}},
    "object-with-schema": {"response_format": {"type": "json_object", "schema": PERSON}},
    "text": {"response_format": {"type": "text"}},
    "several-choices": {"n": 2, "max_tokens": 8},
    "drawn": {"temperature": 0.9, "seed": 42},
    "system": {"messages": [SYSTEM, *COLOURS]},
    "begun-reply": {"messages": [*COLOURS, {"role": "assistant", "content": "Red, "}]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Name a colour."}]}]},
    "other-model-name": {"model": "somebody-else"},
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_the_same(pair: EnginePair, name: str) -> None:
    body = greedy(**{"messages": COLOURS, "max_tokens": 40, **CHATS[name]})
    real, native = pair.post("/v1/chat/completions", body)
    assert_same(native, real, apart_from=["usage"] if name == "several-choices" else [])


STREAMED: dict[str, dict[str, Any]] = {
    "plain": {},
    "usage": {"stream_options": {"include_usage": True}},
    "stop-string": {"stop": ", and"},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "timings": {"timings_per_token": True, "max_tokens": 6},
    "one-token": {"max_tokens": 1},
    "begun-reply": {"messages": [*COLOURS, {"role": "assistant", "content": "Red, "}]},
}


@pytest.mark.parametrize("name", STREAMED)
def test_a_streamed_chat_is_the_same(pair: EnginePair, name: str) -> None:
    body = greedy(**{"messages": COLOURS, "max_tokens": 30, **STREAMED[name]})
    real, native, is_done = pair.stream("/v1/chat/completions", body)
    assert is_done == (True, True)
    assert_same(native, real)


def test_responses_are_the_same(pair: EnginePair) -> None:
    body = greedy(input="Name three colours.", instructions="Be brief.", max_output_tokens=20)
    real, native = pair.post("/v1/responses", body)
    assert_same(native, real)
    real, native, is_done = pair.stream("/v1/responses", body)
    assert is_done == (False, False)
    assert_same(native, real)


def test_messages_are_the_same(pair: EnginePair) -> None:
    # What is kept of a prompt depends on the slot here: `cache_prompt` is not read by the real one.
    counts = ["usage.cache_read_input_tokens", "usage.input_tokens"]
    body = greedy(messages=COLOURS, system="Be brief.", max_tokens=20)
    for fields, differing in (({}, []), ({"stop_sequences": [","]}, ["stop_reason", "stop_sequence"])):
        real, native = pair.post("/v1/messages", {**body, **fields})
        assert_same(native, real, apart_from=[*counts, *differing])
        assert sum_of_prompt(native["usage"]) == sum_of_prompt(real["usage"])
    real, native, is_done = pair.stream("/v1/messages", body)
    assert is_done == (False, False)
    assert_same(native, real, apart_from=[f"[].message.{name}" for name in counts])


def sum_of_prompt(usage: dict[str, int]) -> int:
    return usage["cache_read_input_tokens"] + usage["input_tokens"]
