"""Chunks joined into one answer (08 §7.8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.proxy.collect import Collector
from framework.proxy.errors import ProxyError
from framework.proxy.relay import Flavour
from framework.proxy.stream_events import StreamState, read_event
from tests.proxy.scripted_engine import TIMINGS, USAGE, chunk, closing, finish, piece, role


def collected(*payloads: dict[str, Any], flavour: Flavour = "chat", limit: int = 10_000) -> dict[str, Any]:
    """The answer made of these chunks."""
    state = StreamState()
    collector = Collector(state, flavour=flavour, asked_model="gpt", limit_bytes=limit)
    for payload in payloads:
        event = read_event(json.dumps(payload).encode())
        assert event is not None
        state.observe(event)
        collector.take(event)
    return collector.result()


def delta(index: int = 0, **fields: Any) -> dict[str, Any]:
    """A chunk with these fields in its delta."""
    return chunk(choices=[{"index": index, "delta": fields, "finish_reason": None}])


def message(*payloads: dict[str, Any]) -> dict[str, Any]:
    """The message of the first choice."""
    found: dict[str, Any] = collected(*payloads)["choices"][0]["message"]
    return found


def test_an_answer_in_full() -> None:
    answer = collected(role(), piece("Hel"), piece("lo"), finish(system_fingerprint="b1"), closing())
    assert answer == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "gpt",
        "system_fingerprint": "b1",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
        ],
        "usage": USAGE,
        "timings": TIMINGS,
    }


def test_reasoning_is_joined_apart_from_content() -> None:
    assert message(delta(reasoning_content="a"), delta(reasoning_content="b"), piece("c")) == {
        "role": "assistant",
        "reasoning_content": "ab",
        "content": "c",
    }


def test_tool_calls_are_merged_by_their_index() -> None:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a'}}
    more = {"index": 0, "function": {"arguments": '":1}'}}
    second = {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    found = message(delta(tool_calls=[first]), delta(tool_calls=[more, second]))
    assert found["content"] is None
    assert found["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


def test_log_probabilities_are_joined() -> None:
    def with_logprobs(token: str) -> dict[str, Any]:
        logprobs = {"content": [{"token": token}]}
        return chunk(choices=[{"index": 0, "delta": {"content": token}, "logprobs": logprobs}])

    answer = collected(with_logprobs("a"), with_logprobs("b"))
    assert answer["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def test_choices_are_kept_apart() -> None:
    answer = collected(piece("b", 1), piece("a", 0), piece("B", 1), finish("length", 1), finish("stop", 0))
    assert [(c["message"]["content"], c["finish_reason"]) for c in answer["choices"]] == [
        ("a", "stop"),
        ("bB", "length"),
    ]


def test_unknown_fields_come_from_the_last_chunk_that_has_them() -> None:
    assert collected({**piece("a"), "x": 1}, {**piece("b"), "x": 2}, piece("c"))["x"] == 2


def test_an_answer_that_says_nothing_has_empty_content() -> None:
    assert message(role(), finish()) == {"role": "assistant", "content": ""}


def test_prompt_progress_is_no_part_of_an_answer() -> None:
    assert "prompt_progress" not in collected({**role(), "prompt_progress": {"total": 1}}, piece("a"))


def test_a_plain_completion_joins_its_text() -> None:
    def text(value: str, **fields: Any) -> dict[str, Any]:
        choice = {"index": 0, "text": value, "logprobs": None, "finish_reason": None, **fields}
        return {"id": "c", "object": "text_completion", "model": "smol", "choices": [choice]}

    answer = collected(
        text("He"),
        {**text("llo", finish_reason="length"), "usage": USAGE},
        flavour="completion",
    )
    assert answer == {
        "id": "c",
        "object": "text_completion",
        "model": "gpt",
        "choices": [{"index": 0, "text": "Hello", "finish_reason": "length"}],
        "usage": USAGE,
    }


def test_an_answer_without_end_is_given_up() -> None:
    with pytest.raises(ProxyError) as caught:
        collected(*[piece("x" * 100)] * 10, limit=1000)
    assert caught.value.code == "upstream_protocol_error"
