"""The texts of a request for the log: bounded, without media and secrets, whatever a body holds."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.stream_events import StreamEvent
from framework.proxy.texts import HALF_BYTES, MEDIA_LENGTH, KeptTexts
from framework.values.request_record import TEXTS_LIMIT_BYTES
from tests.proxy.scripted_engine import chunk, piece, role


def model_event(data: dict[str, Any]) -> StreamEvent:
    return StreamEvent("model", b"", data)


def asked(body: dict[str, Any]) -> Any:
    return KeptTexts(body).result().asked


def test_a_small_body_is_kept_as_it_is() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0.5, "stop": None, "stream": True}
    texts = KeptTexts(body).result()
    assert texts.asked == body
    assert not texts.is_cut


def test_the_answer_is_put_together_by_what_it_is_made_of() -> None:
    texts = KeptTexts({})
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"a":'}}
    more = {"index": 0, "function": {"arguments": "1}"}}
    for data in (
        role(),
        chunk(choices=[{"index": 0, "delta": {"reasoning_content": "hm"}}]),
        piece("a"),
        piece("b"),
        piece("other", index=1),
        chunk(choices=[{"index": 0, "delta": {"tool_calls": [call]}}]),
        chunk(choices=[{"index": 0, "delta": {"tool_calls": [more, "nonsense"]}}]),
        chunk(choices=[{"index": 0, "delta": None}]),
        chunk(choices=[{"index": 0, "text": "plain"}]),
    ):
        texts.observe(model_event(data))
    assert texts.result().answered == {
        "reasoning_content": "hm",
        "content": "abplain",
        "content[1]": "other",
        "tool_calls": 'look{"a":1}',
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"prompt": "é" * 1_000_000}, id="a-long-text"),
        pytest.param({"messages": [{"content": "word " * 100}] * 10_000}, id="many-messages"),
        pytest.param({"prompt": [[]] * 1_000_000}, id="many-empty-values"),
        pytest.param({str(number): 1 for number in range(100_000)}, id="many-fields"),
        pytest.param({"x" * 1_000_000: 1}, id="a-long-name"),
    ],
)
def test_a_large_body_is_cut_and_says_so(body: dict[str, Any]) -> None:
    texts = KeptTexts(body).result()
    assert texts.is_cut
    assert len(orjson.dumps(texts.asked)) < TEXTS_LIMIT_BYTES


def test_a_deep_body_is_cut() -> None:
    body: dict[str, Any] = {}
    inner = body
    for _ in range(900):
        inner["a"] = {}
        inner = inner["a"]
    texts = KeptTexts(body).result()
    assert texts.is_cut
    assert str(texts.asked).count("'a'") < 30


def test_a_long_answer_is_cut_and_costs_no_more() -> None:
    texts = KeptTexts({})
    for _ in range(3000):
        texts.observe(model_event(piece("x" * 100)))
    found = texts.result()
    assert found.is_cut
    assert HALF_BYTES - 100 <= len(found.answered["content"]) <= HALF_BYTES + 10


def test_pictures_and_sound_are_left_out() -> None:
    data = "A" * (MEDIA_LENGTH + 1)
    parts = [
        {"type": "text", "text": data},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    ]
    found = asked({"messages": [{"role": "user", "content": parts}], "images": [data]})
    text, image, sound = found["messages"][0]["content"]
    assert text["text"] == data
    assert image["image_url"]["url"] == sound["input_audio"]["data"] == "<201 characters of data>"
    assert found["images"] == ["<201 characters of data>"]


def test_secrets_are_hidden_on_both_sides() -> None:
    texts = KeptTexts({"prompt": "llama-server --api-key abc", "user": "DB_PASSWORD=abc"})
    for part in ("use --hf", "-token ab", "c please"):
        texts.observe(model_event(piece(part)))
    found = texts.result()
    assert "abc" not in str(found.asked)
    assert found.answered["content"] == "use --hf-token <redacted> please"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=40,
)


@given(st.dictionaries(st.text(max_size=9), JSON, max_size=6))
def test_any_body_is_taken(body: dict[str, Any]) -> None:
    orjson.dumps(asked(body))
