"""What replies of many models say, however they arrive and however broken they are."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.chat.deltas import ReplyDeltas
from framework.chat.formats import CONTENT_ONLY, ReadOptions, detect_format
from framework.chat.partial_json import object_of
from framework.chat.reply import ParsedReply, parse_reply
from tests.chat.reply_samples import SAMPLES, Sample
from tests.support.cost import least_cost_s

MARKS = sorted(
    {
        piece
        for sample in SAMPLES.values()
        for piece in (*sample.template.split(), sample.text[:9], sample.text[-9:])
    }
)
BROKEN = st.lists(
    st.one_of(
        st.sampled_from(MARKS),
        st.sampled_from(
            ['{"name": "f", "arguments": ', "{", "}", "[", '"', "\\", "f", "\n", " ", "</think>"]
        ),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


def read(sample: Sample, text: str, *, is_partial: bool = False) -> ParsedReply:
    return parse_reply(text, sample.form, sample.options, is_partial=is_partial)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_reply_is_taken_apart(name: str) -> None:
    sample = SAMPLES[name]
    reply = read(sample, sample.text)
    assert sample.form.name == sample.format
    assert (reply.content, reply.reasoning) == (sample.content, sample.reasoning)
    assert tuple((call.name, call.arguments) for call in reply.tool_calls) == sample.calls


@pytest.mark.parametrize("name", SAMPLES)
def test_every_part_of_a_reply_is_the_beginning_of_what_it_says(name: str) -> None:
    sample = SAMPLES[name]
    whole = read(sample, sample.text)
    for size in range(len(sample.text)):
        part = read(sample, sample.text[:size], is_partial=True)
        assert whole.content.startswith(part.content)
        assert whole.reasoning.startswith(part.reasoning)
        for ours, theirs in zip(part.tool_calls, whole.tool_calls, strict=False):
            assert ours.name == theirs.name
            assert theirs.arguments.startswith(ours.arguments)
        assert len(part.tool_calls) <= len(whole.tool_calls)


@given(name=st.sampled_from(sorted(SAMPLES)), cuts=st.sets(st.integers(0, 300)), broken=BROKEN)
def test_pieces_say_what_the_whole_says(name: str, cuts: set[int], broken: str) -> None:
    sample = SAMPLES[name]
    for text in (sample.text, broken, sample.text[: len(broken)] + broken):
        deltas = ReplyDeltas(sample.form, sample.options)
        places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
        told = []
        for start, end in pairwise(places):
            told += deltas.feed(text[start:end])
        told += deltas.finish()
        whole = read(sample, text)
        assert deltas.so_far() == whole
        assert "".join(delta.content for delta in told) == whole.content
        assert "".join(delta.reasoning for delta in told) == whole.reasoning
        assert [delta.call_name for delta in told if delta.call_name] == [
            call.name for call in whole.tool_calls
        ]
        for index, call in enumerate(whole.tool_calls):
            pieces = [delta.arguments for delta in told if delta.call_index == index]
            assert "".join(pieces) == call.arguments


def test_reasoning_stays_in_the_content_where_it_is_not_told_apart() -> None:
    text, form = "<think>\nfoo\n</think>\n\n bar", detect_format("</think>")
    assert parse_reply(text, form, ReadOptions()) == ParsedReply(" bar", "foo\n", ())
    assert parse_reply(text, form, ReadOptions(splits_reasoning=False)) == ParsedReply(text, "", ())


def test_harmony_keeps_its_marks_around_reasoning_that_is_not_told_apart() -> None:
    sample = SAMPLES["harmony-call"]
    reply = parse_reply(sample.text, sample.form, ReadOptions(splits_reasoning=False, parse_tools=True))
    assert reply.content == "<|channel|>analysis<|message|>think<|end|>one"


def test_calls_are_text_when_nobody_asked_for_them() -> None:
    sample = SAMPLES["hermes"]
    assert parse_reply(sample.text, sample.form, ReadOptions()).content == sample.text


def test_a_format_of_content_changes_nothing() -> None:
    assert (
        parse_reply("\n <think> {\n", CONTENT_ONLY, ReadOptions(parse_tools=True)).content == "\n <think> {\n"
    )


@pytest.mark.parametrize(
    ("name", "opening", "piece"),
    [
        ("hermes", "", "word <to "),
        ("hermes", "", "<tool_call>"),
        ("hermes", "", " "),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "', '\\"'),
        ("llama", "", '{"'),
        ("harmony-call", "<|channel|>final<|message|>", "<|"),
        ("qwen3-coder", "<tool_call><function=f><parameter=z>", "[["),
    ],
)
def test_the_cost_of_a_reply_is_that_of_its_length(name: str, opening: str, piece: str) -> None:
    def read(count: int) -> None:
        deltas = ReplyDeltas(SAMPLES[name].form, SAMPLES[name].options)
        deltas.feed(opening)
        for _ in range(count):
            deltas.feed(piece)
        deltas.finish()

    # Eight times as much text; 64 times as much work if the text were looked at anew each time.
    limit_s = 24 * max(least_cost_s(lambda: read(2_000)), 0.01)
    assert least_cost_s(lambda: read(16_000), below_s=limit_s) < limit_s


def test_deep_nesting_is_just_text_of_arguments() -> None:
    nested = "[" * 100_000
    reply = read(SAMPLES["hermes"], f'<tool_call>{{"name": "f", "arguments": {{"a": {nested}')
    assert reply.tool_calls[0].arguments == f'{{"a": {nested}'
    assert object_of(reply.tool_calls[0].arguments) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": [1, {"b": "x', {"a": [1, {"b": "x"}]}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, "b": ', {"a": 1}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ("[1]", {}),
        ("nonsense", {}),
        ("", {}),
    ],
)
def test_a_cut_object_is_closed(text: str, found: dict[str, object]) -> None:
    assert object_of(text) == found


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    )
)
def test_every_beginning_of_an_object_gives_an_object(value: object) -> None:
    text = json.dumps({"a": value})
    assert object_of(text) == {"a": value}
    for size in range(len(text)):
        assert isinstance(object_of(text[:size]), dict)
