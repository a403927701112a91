"""Reasoning in the answer: two forms, and answers that are reasoning only (08 §11, cases TC-05, TC-06)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.proxy.errors import ProxyError
from framework.proxy.inline_tags import InlineTags
from framework.proxy.reasoning_answer import ReasoningForm, ReasoningView, reasoning_form
from framework.proxy.stream_events import choices_of, delta_of, index_of, read_event
from tests.proxy.scripted_engine import CHUNK, Call, finish, piece, role
from tests.proxy.world import World

SPLIT, INLINE = ReasoningForm(), ReasoningForm("inline", promote=False, extract=False)


def thought(text: str, index: int = 0) -> dict[str, Any]:
    """A piece of reasoning."""
    choice = {"index": index, "delta": {"reasoning_content": text}, "finish_reason": None}
    return {**CHUNK, "choices": [choice]}


def call_piece() -> dict[str, Any]:
    calls = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]
    return {**CHUNK, "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]}


def seen(form: ReasoningForm, *chunks: dict[str, Any], index: int = 0) -> tuple[str, str]:
    """Reasoning and content that reach the client, as payloads say."""
    view = ReasoningView(form, limit_bytes=10_000)
    events = [event for c in chunks if (event := read_event(json.dumps(c).encode())) is not None]
    passed = [*view.take(events), *view.finish()]
    deltas = [
        delta_of(choice)
        for event in passed
        for choice in choices_of(json.loads(event.payload))
        if index_of(choice) == index
    ]
    return tuple(  # type: ignore[return-value]
        "".join(delta.get(name) or "" for delta in deltas) for name in ("reasoning_content", "content")
    )


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([thought("a"), thought("b"), piece("c"), finish()], ("ab", "c")),
        ([thought("a"), finish()], ("a", "a")),
        ([thought("a")], ("a", "a")),
        ([thought("a"), finish("length")], ("a", "")),
        ([thought("a"), call_piece(), finish("tool_calls")], ("a", "")),
        ([piece("<th"), piece("ink>a</th"), piece("ink>b"), finish()], ("a", "b")),
        ([piece("<thx"), finish()], ("", "<thx")),
        ([piece("x<think>"), finish()], ("", "x<think>")),
        ([piece("\n <think>a"), finish()], ("a", "a")),
        ([piece("<thi"), finish()], ("", "<thi")),
        ([thought("a"), piece("<think>b"), finish()], ("a", "<think>b")),
    ],
)
def test_split_form(chunks: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    assert seen(SPLIT, *chunks) == expected


@pytest.mark.parametrize(
    ("form", "chunks", "expected"),
    [
        (INLINE, [thought("a"), thought("b"), piece("c"), finish()], "<think>ab</think>c"),
        (INLINE, [thought("abc"), finish()], "<think>abc</think>"),
        (ReasoningForm("inline", True, False), [thought("abc"), finish()], "<think>abc</think>abc"),
        (ReasoningForm("inline", True, False), [thought("abc"), finish("length")], "<think>abc</think>"),
        (ReasoningForm("inline", True, False), [thought("abc")], "<think>abc</think>abc"),
        (INLINE, [thought("a"), piece("b"), thought("c"), finish()], "<think>a</think>b<think>c</think>"),
    ],
)
def test_inline_form(form: ReasoningForm, chunks: list[dict[str, Any]], expected: str) -> None:
    assert seen(form, *chunks) == ("", expected)


def test_promoted_text_comes_before_the_finish_reason() -> None:
    view = ReasoningView(SPLIT, limit_bytes=100)
    events = [read_event(json.dumps(one).encode()) for one in (thought("a"), finish())]
    passed = view.take([event for event in events if event is not None])
    choices = [choices_of(event.data)[0] for event in passed]
    assert [delta_of(choice).get("content") for choice in choices] == [None, "a", None]
    assert [choice["finish_reason"] for choice in choices] == [None, None, "stop"]


def test_choices_do_not_mix() -> None:
    chunks = [thought("a"), piece("b", 1), finish(), finish(index=1)]
    assert (seen(SPLIT, *chunks), seen(SPLIT, *chunks, index=1)) == (("a", "a"), ("", "b"))


def test_an_event_in_which_nothing_changes_is_passed_on_as_it_came() -> None:
    view = ReasoningView(SPLIT, limit_bytes=100)
    event = read_event(b'{"choices": [ {"index":0, "delta":{"content":"hi"}}]}')
    assert event is not None
    assert view.take([event]) == [event]
    assert event.payload == b'{"choices": [ {"index":0, "delta":{"content":"hi"}}]}'


def test_endless_reasoning_is_given_up() -> None:
    view = ReasoningView(SPLIT, limit_bytes=3)
    event = read_event(json.dumps(thought("abcd")).encode())
    assert event is not None
    with pytest.raises(ProxyError):
        view.take([event])


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<th", "ink>", "</", " ", "\n", "a", "é"])), st.data()
)
def test_tags_are_found_wherever_the_pieces_are_cut(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    whole, cut = InlineTags(), InlineTags()
    one = _fed(whole, [text])
    many = _fed(cut, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])
    assert one == many
    # Nothing is lost but the tags, and blanks before the first of them.
    if not text.lstrip().startswith("<think>"):
        assert one == ("", text)


def _fed(tags: InlineTags, pieces: list[str]) -> tuple[str, str]:
    found = [*map(tags.feed, pieces), tags.finish()]
    return "".join(thought for thought, _ in found), "".join(text for _, text in found)


@pytest.mark.parametrize(
    "body",
    [{"reasoning_output": "both"}, {"promote_reasoning_only": 1}, {"extract_inline_reasoning": "no"}],
    ids=str,
)
def test_a_form_that_there_is_not(body: dict[str, Any]) -> None:
    with pytest.raises(ProxyError):
        reasoning_form(body)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_an_answer_that_is_reasoning_only_is_given_as_content(world: World, stream: bool) -> None:
    async def think(call: Call) -> None:
        await call.start_stream()
        await call.events(role(), thought("so"), finish())
        await call.end()

    world.engine.default = think
    call = await world.chat(stream=stream)
    if stream:
        deltas = [delta_of(choice) for event in call.events() for choice in choices_of(event)]
        assert "".join(delta.get("content") or "" for delta in deltas) == "so"
    else:
        message = call.json()["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("so", "so")


async def test_thoughts_in_the_history_are_passed_on(world: World) -> None:
    history = [{"role": "assistant", "content": "b", "reasoning_content": "a"}]
    await world.chat(messages=history)
    assert world.engine.calls[0].body["messages"] == history


async def test_a_limit_that_went_into_reasoning_is_noted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def think(call: Call) -> None:
        await call.start_stream()
        await call.events(role(), thought("so"), finish("length"))
        await call.end()

    caplog.set_level("INFO")
    world.engine.default = think
    choice = (await world.chat()).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "length")
    assert (world.records[0].status, world.records[0].error) == (200, "empty_content_reasoning_limit")
    assert "models.smol.reasoning" in caplog.text


@pytest.mark.parametrize(("arguments", "status"), [("{", 400), ('{"a": 1}', 200), ("", 200)], ids=str)
async def test_broken_arguments_in_the_history(world: World, arguments: str, status: int) -> None:
    function = {"name": "f", "arguments": arguments}
    calls = [{"id": "a", "type": "function", "function": function}]
    history = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    call = await world.chat(messages=history)
    assert call.status == status
    if status == 400:
        assert call.error()["param"] == "messages[1].tool_calls[0].function.arguments"
        assert "line 1 column 2" in call.error()["message"]
        assert world.engine.calls == []
    else:
        sent = world.engine.calls[0].body["messages"][1]["tool_calls"][0]["function"]["arguments"]
        assert sent == (arguments or "{}")
