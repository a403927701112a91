"""The checks of the storms can fail: each thing that must not happen is seen as what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.chaos.judging import DONE, Asked, Kind, Received, judge

WORD, OTHER, TOKENS = "table", "water", 3
ID, OTHER_ID = "chatcmpl-1", "chatcmpl-2"
STREAM = Asked(1_000_000, WORD, TOKENS, streams=True)
WHOLE = Asked(1_000_001, WORD, TOKENS, streams=False)


def event(text: str | None, *, model: str = WORD, answer: str = ID, **more: Any) -> str:
    delta = {"content": text} if text is not None else {}
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return json.dumps({"id": answer, "model": model, "choices": choices, **more})


def stream(*payloads: str, **more: Any) -> Received:
    return Received(200, "".join(f"data: {payload}\n\n" for payload in payloads).encode(), **more)


def body(text: str, *, status: int = 200, model: str = WORD, **more: Any) -> Received:
    answer = {"model": model, "choices": [{"message": {"content": text}}]}
    return Received(status, json.dumps(answer).encode(), **more)


def error(code: str, status: int = 503) -> Received:
    return Received(status, json.dumps({"error": {"code": code, "message": "It is so."}}).encode())


SAID = [event(f" {WORD}")] * TOKENS
END = [event(None), DONE]
AS_EVENT = json.dumps({"error": {"code": "stream_interrupted", "message": "It broke."}})
GARBAGE = Received(200, b'data: {"cut\n\n')


@pytest.mark.parametrize(
    ("kind", "received"),
    [
        pytest.param("whole", stream(*SAID, *END), id="whole"),
        pytest.param("error", error("queue_full"), id="refused"),
        pytest.param("error", stream(SAID[0], AS_EVENT, DONE), id="error in the stream"),
        pytest.param("lost", stream(*SAID[:2]), id="cut without a word"),
        pytest.param("lost", Received(failure="reset"), id="no answer"),
        pytest.param("lost", stream(*SAID[:2], *END), id="too short, as if that were all"),
        pytest.param("lost", Received(502, b"Bad Gateway"), id="an error that is no object"),
        pytest.param("broken", stream(*SAID[:2], was_down=True), id="cut by the end of up"),
        pytest.param("broken", Received(failure="refused", was_down=True), id="refused while up is down"),
        pytest.param("left", stream(SAID[0], has_left=True), id="left"),
        pytest.param("unclear", error("internal_error", 500), id="internal error"),
        pytest.param("unclear", GARBAGE, id="garbage"),
        pytest.param("wrong", stream(event(f" {OTHER}"), *SAID[1:], *END), id="words of another model"),
        pytest.param("wrong", stream(event(f" {WORD}", model=OTHER), *END), id="name of another model"),
        pytest.param("wrong", stream(event(" thief"), DONE), id="words of nobody"),
        pytest.param("wrong", stream(event(f" {OTHER}"), has_left=True), id="wrong before it left"),
        pytest.param("twice", stream(*SAID, *SAID, *END), id="said twice"),
        pytest.param("twice", stream(*SAID, *END, *SAID, *END), id="answered twice"),
        pytest.param("twice", stream(SAID[0], event(f" {WORD}", answer=OTHER_ID), *END), id="two answers"),
        pytest.param("twice", stream(*SAID, *END, event(None)), id="more behind the end"),
    ],
)
def test_a_stream_is_seen_as_what_it_is(kind: Kind, received: Received) -> None:
    assert judge(STREAM, received).kind == kind


@pytest.mark.parametrize(
    ("kind", "received"),
    [
        pytest.param("whole", body(f" {WORD}" * TOKENS), id="whole"),
        pytest.param("lost", body(f" {WORD}"), id="too short"),
        pytest.param("lost", Received(200, b'{"model": "ta', "cut"), id="cut"),
        pytest.param(
            "broken", Received(200, b'{"model": "ta', "cut", was_down=True), id="cut by the end of up"
        ),
        pytest.param("wrong", body(f" {OTHER}" * TOKENS), id="words of another model"),
        pytest.param("wrong", body(f" {WORD}" * TOKENS, model=OTHER), id="name of another model"),
        pytest.param("twice", body(f" {WORD}" * TOKENS * 2), id="said twice"),
        pytest.param("error", error("connection_lost", 502), id="refused"),
    ],
)
def test_an_answer_in_one_piece_is_seen_as_what_it_is(kind: Kind, received: Received) -> None:
    assert judge(WHOLE, received).kind == kind
