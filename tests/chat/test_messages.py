"""Messages of clients in the form that templates take."""

from __future__ import annotations

from typing import Any

import pytest

from framework.chat.messages import MessageError, read_messages

ALL = dict.fromkeys(
    (
        *("supports_object_arguments", "supports_parallel_tool_calls", "supports_preserve_reasoning"),
        *("supports_string_content", "supports_system_role", "supports_tool_calls", "supports_tools"),
        "supports_typed_content",
    ),
    True,
)
PLAIN = {**ALL, "supports_typed_content": False}


def _call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


def _one(message: Any, caps: dict[str, bool] = PLAIN) -> dict[str, Any]:
    return read_messages([message], caps)[0]


def test_developers_speak_as_the_system() -> None:
    assert _one({"role": "developer", "content": "x"}) == {"role": "system", "content": "x"}


def test_parts_become_one_text_where_the_template_knows_no_parts() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert _one(message)["content"] == "a\nb"
    assert _one(message, ALL)["content"] == message["content"]


def test_texts_become_parts_where_the_template_knows_nothing_else() -> None:
    caps = {**ALL, "supports_string_content": False}
    assert _one({"role": "user", "content": "a"}, caps)["content"] == [{"type": "text", "text": "a"}]


def test_arguments_take_the_form_that_the_template_wants() -> None:
    assert _one({"role": "assistant", "content": None, "tool_calls": [_call('{"a": "ö"}')]}) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [_call({"a": "ö"})],
    }
    as_text = {**PLAIN, "supports_object_arguments": False}
    message = {"role": "assistant", "tool_calls": [_call({"a": "ö"})]}
    assert _one(message, as_text)["tool_calls"] == [_call('{"a": "ö"}')]


def test_what_tools_answer_keeps_its_call() -> None:
    message = {"role": "tool", "content": "sun", "tool_call_id": "c1", "name": "f", "extra": 1}
    assert _one(message) == {"role": "tool", "content": "sun", "tool_call_id": "c1", "name": "f"}


def test_system_texts_join_the_first_user_where_the_template_has_no_such_role() -> None:
    messages = [
        *({"role": "system", "content": "S1"}, {"role": "user", "content": "U"}),
        *({"role": "system", "content": "S2"}, {"role": "user", "content": "V"}),
    ]
    read = read_messages(messages, {**PLAIN, "supports_system_role": False})
    assert read == [{"role": "user", "content": "S1\nS2\nU"}, {"role": "user", "content": "V"}]
    alone = read_messages(messages[:1], {**PLAIN, "supports_system_role": False})
    assert alone == [{"role": "user", "content": "S1"}]


def test_what_the_client_sent_is_not_changed() -> None:
    message = {"role": "developer", "content": [{"type": "text", "text": "a"}], "tool_calls": [_call("{}")]}
    before = repr(message)
    read_messages([message], PLAIN)
    assert repr(message) == before


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (None, "Expected 'messages' to be an array"),
        ({}, "Expected 'messages' to be an array"),
        (["x"], "must be an object"),
        ([{"content": "x"}], "Missing 'role'"),
        ([{"role": 3, "content": "x"}], "Missing 'role'"),
        ([{"role": "user"}], "must contain 'content'"),
        ([{"role": "assistant"}], "either 'content' or 'tool_calls'"),
        ([{"role": "assistant", "content": None}], "either 'content' or 'tool_calls'"),
        ([{"role": "user", "content": 3}], "to be a string or an array"),
        ([{"role": "user", "content": [3]}], "unsupported content"),
        ([{"role": "user", "content": [{"type": "foo"}]}], "unsupported content"),
        ([{"role": "user", "content": [{"type": "text"}]}], "needs a string 'text'"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "image input is not supported"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "audio input is not supported"),
        ([{"role": "user", "content": "x", "name": 3}], "'name' of a message"),
        ([{"role": "assistant", "tool_calls": {"a": 1}}], "must be an array"),
        ([{"role": "assistant", "tool_calls": [{}]}], "needs a 'function'"),
        ([{"role": "assistant", "tool_calls": [_call("{bad")]}], "Failed to parse tool call arguments"),
        (
            [{"role": "assistant", "tool_calls": [_call("[" * 100_000)]}],
            "Failed to parse tool call arguments",
        ),
    ],
)
def test_unreadable_conversations_are_named(messages: Any, told: str) -> None:
    with pytest.raises(MessageError, match=told):
        read_messages(messages, PLAIN)
