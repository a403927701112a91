"""Shapes of `/v1/messages`, its bodies as chats, and the official client on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest

from framework.nativeserver.anthropic_body import chat_body
from framework.nativeserver.errors import ApiError
from tests.nativeserver.chat_world import CALLING, WEATHER, ChatWorld, chat_world, streamed, whole
from tests.nativeserver.generation_world import failure, partial

PATH = "/v1/messages"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
TOOL: Any = {"name": "get_weather", "description": "d", "input_schema": WEATHER["parameters"]}


@pytest.fixture
async def world() -> AsyncIterator[ChatWorld]:
    async with chat_world() as made:
        yield made


async def test_an_answer_has_its_members_in_order(world: ChatWorld) -> None:
    world.engine.results = whole("hello", n_prompt_tokens=10, n_prompt_cached=4)
    answer = (await world.post(PATH, ASK)).json()
    assert list(answer) == [
        *("id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage")
    ]
    assert answer["content"] == [{"type": "text", "text": "hello"}]
    assert answer["usage"] == {"cache_read_input_tokens": 4, "input_tokens": 6, "output_tokens": 5}
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("end_turn", None)


@pytest.mark.parametrize(
    ("stop", "text", "reason", "word"),
    [
        ("eos", "hi", "end_turn", None),
        ("word", "hi", "stop_sequence", ";"),
        ("limit", "hi", "max_tokens", None),
        ("eos", CALLING, "tool_use", None),
    ],
)
async def test_why_a_message_ended(
    world: ChatWorld, stop: str, text: str, reason: str, word: str | None
) -> None:
    for stream in (False, True):
        fields: dict[str, Any] = {"stop": stop, "stopping_word": (word or "").encode()}
        world.engine.results = (streamed if stream else whole)(text, **fields)
        answer = await world.post(PATH, {**ASK, "tools": [TOOL], "stream": stream})
        told = answer.events()[-2]["delta"] if stream else answer.json()
        assert (told["stop_reason"], told["stop_sequence"]) == (reason, word)


async def test_the_parts_of_a_reply_are_blocks(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    thinking, text, call = (await world.post(PATH, {**ASK, "tools": [TOOL]})).json()["content"]
    assert thinking == {"type": "thinking", "thinking": "hmm\n", "signature": ""}
    assert text == {"type": "text", "text": "Let me see."}
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "get_weather", {"city": "Oslo"})
    assert call["id"]


async def test_the_input_of_a_cut_call_is_what_is_there(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING[: CALLING.index("slo")], stop="limit")
    call = (await world.post(PATH, {**ASK, "tools": [TOOL]})).json()["content"][2]
    assert call["input"] == {"city": "O"}


async def test_blocks_close_before_others_open(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING, size=9)
    answer = await world.post(PATH, {**ASK, "tools": [TOOL], "stream": True})
    events = answer.events()
    names = [
        line.removeprefix("event: ") for line in answer.body.decode().split("\n") if line[:6] == "event:"
    ]
    assert names == [event["type"] for event in events]
    told = [(event["type"], event.get("index"), event.get("delta", {}).get("type")) for event in events]
    assert list(dict.fromkeys(told)) == [
        ("message_start", None, None),
        ("content_block_start", 0, None),
        ("content_block_delta", 0, "thinking_delta"),
        ("content_block_delta", 0, "signature_delta"),
        ("content_block_stop", 0, None),
        ("content_block_start", 1, None),
        ("content_block_delta", 1, "text_delta"),
        ("content_block_stop", 1, None),
        ("content_block_start", 2, None),
        ("content_block_delta", 2, "input_json_delta"),
        ("content_block_stop", 2, None),
        ("message_delta", None, None),
        ("message_stop", None, None),
    ]
    assert b"[DONE]" not in answer.body


async def test_an_error_has_the_form_of_this_interface(world: ChatWorld) -> None:
    answer = (await world.post(PATH, {"messages": 3})).json()
    assert (answer["type"], answer["error"]["type"]) == ("error", "invalid_request_error")
    world.engine.results = lambda task: [partial(task, b"a"), failure(task)]
    stream = await world.post(PATH, {**ASK, "stream": True})
    assert b"event: error\n" in stream.body
    assert stream.events()[-1] == {
        "type": "error",
        "error": {"code": 500, "message": "broken", "type": "server_error"},
    }


async def test_tokens_are_counted(world: ChatWorld) -> None:
    counted = (await world.post(f"{PATH}/count_tokens", {"messages": ASK["messages"]})).json()
    await world.post(PATH, ASK)
    assert counted == {"input_tokens": len(world.engine.tasks[0].tokens)}


def test_a_body_becomes_a_chat() -> None:
    body = {
        "model": "m",
        "system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hmm", "signature": "s"},
                    {"type": "text", "text": "ok"},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "rain"}],
                    },
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        "stop_sequences": [";"],
        "tools": [TOOL],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": {"user_id": "u"},
        "top_k": 5,
    }
    function = {"name": "get_weather", "description": "d", "parameters": WEATHER["parameters"]}
    assert chat_body(body) == {
        "model": "m",
        "top_k": 5,
        "messages": [
            {"role": "system", "content": "Be\nbrief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "ok"}],
                "reasoning_content": "hmm",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
            {"role": "user", "content": [{"type": "text", "text": "and?"}]},
        ],
        "max_tokens": 4096,
        "stop": [";"],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "chat_template_kwargs": {"enable_thinking": True},
        "reasoning_budget_tokens": 1024,
    }


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_a_choice_of_tools_has_another_name(choice: dict[str, str], wanted: Any) -> None:
    chat = chat_body({**ASK, "tools": [TOOL], "tool_choice": choice})
    assert (chat["tool_choice"], chat["parallel_tool_calls"]) == (wanted, True)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "messages"),
        ({"messages": 3}, "messages"),
        ({"messages": [3]}, "messages"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "document"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "text"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "tool_use_id"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]}, "name"),
        ({**ASK, "system": 3}, "system"),
        ({**ASK, "tools": [{"name": 3}]}, "name"),
        ({**ASK, "tools": [{"name": "a", "type": "bash_20250124"}]}, "bash_20250124"),
        ({**ASK, "tool_choice": {"type": "odd"}}, "tool_choice"),
        ({**ASK, "tool_choice": {"type": []}}, "tool_choice"),
        ({**ASK, "thinking": {"type": "odd"}}, "thinking"),
        ({**ASK, "thinking": {"type": "enabled", "budget_tokens": "9"}}, "budget_tokens"),
    ],
)
def test_a_fault_of_a_body_is_named(body: dict[str, Any], named: str) -> None:
    with pytest.raises(ApiError, match=named) as refused:
        chat_body(body)
    assert refused.value.status == 400


async def test_images_and_further_choices_are_refused(world: ChatWorld) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AA"}
    image = {"role": "user", "content": [{"type": "image", "source": source}]}
    for body in ({**ASK, "messages": [image]}, {**ASK, "n": 2}):
        answer = await world.post(PATH, body)
        assert (answer.status, answer.error()["type"]) == (400, "invalid_request_error")


async def test_the_official_client_reads_a_message(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    answer = await world.anthropic.messages.create(
        model="small", max_tokens=50, messages=[{"role": "user", "content": "hi"}], tools=[TOOL]
    )
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use"]
    assert answer.stop_reason == "tool_use"
    assert answer.usage.output_tokens == 5


async def test_the_official_client_reads_a_stream(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING)
    async with world.anthropic.messages.stream(
        model="small", max_tokens=50, messages=[{"role": "user", "content": "hi"}], tools=[TOOL]
    ) as stream:
        answer = await stream.get_final_message()
    thinking, text, call = answer.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "hmm\n"
    assert text.type == "text"
    assert text.text == "Let me see."
    assert call.type == "tool_use"
    assert call.input == {"city": "Oslo"}
    assert answer.stop_reason == "tool_use"


async def test_the_official_client_counts_and_knows_the_errors(world: ChatWorld) -> None:
    counted = await world.anthropic.messages.count_tokens(
        model="small", messages=[{"role": "user", "content": "hi"}]
    )
    assert counted.input_tokens > 0
    with pytest.raises(anthropic.BadRequestError, match="top_k"):
        await world.anthropic.messages.create(
            model="small",
            max_tokens=50,
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"top_k": "many"},
        )
