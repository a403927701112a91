"""Shapes of `/v1/responses`, its bodies as chats, and the official client on them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.errors import ApiError
from framework.nativeserver.responses_body import chat_body
from tests.nativeserver.chat_world import CALLING, WEATHER, ChatWorld, chat_world, streamed, whole
from tests.nativeserver.generation_world import failure, final, partial

PATH = "/v1/responses"
TOOL: Any = {"type": "function", **WEATHER}
STRICT_TOOL: Any = {**TOOL, "strict": True}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}


@pytest.fixture
async def world() -> AsyncIterator[ChatWorld]:
    async with chat_world() as made:
        yield made


async def test_an_answer_has_its_members(world: ChatWorld) -> None:
    answer = (await world.post(PATH, {"input": "hi"})).json()
    (item,) = answer["output"]
    assert (answer["object"], answer["status"], answer["model"]) == ("response", "completed", "small")
    assert answer["id"].startswith("resp_")
    assert answer["incomplete_details"] is None
    assert answer["usage"]["input_tokens"] == len(world.engine.tasks[0].tokens)
    assert (answer["usage"]["output_tokens"], answer["usage"]["input_tokens_details"]) == (
        5,
        {"cached_tokens": 0},
    )
    assert item["content"] == [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hello"}]
    assert item["id"].startswith("msg_")


async def test_the_parts_of_a_reply_are_items(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    reasoning, message, call = (await world.post(PATH, {"input": "hi", "tools": [TOOL]})).json()["output"]
    assert (reasoning["type"], reasoning["content"]) == (
        "reasoning",
        [{"text": "hmm\n", "type": "reasoning_text"}],
    )
    assert (message["type"], message["content"][0]["text"]) == ("message", "Let me see.")
    assert (call["type"], call["name"], call["arguments"]) == (
        "function_call",
        "get_weather",
        '{"city": "Oslo"}',
    )
    assert call["id"].startswith("fc_")
    assert call["call_id"]


async def test_a_limit_stands_in_the_details(world: ChatWorld) -> None:
    world.engine.results = whole("hi", stop="limit")
    answer = (await world.post(PATH, {"input": "hi", "max_output_tokens": 3})).json()
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert world.engine.tasks[0].params.n_predict == 3


async def test_events_come_in_order_and_items_close_before_others_open(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING, size=9)
    answer = await world.post(PATH, {"input": "hi", "tools": [TOOL], "stream": True})
    events = answer.events()
    names = [
        line.removeprefix("event: ") for line in answer.body.decode().split("\n") if line[:6] == "event:"
    ]
    assert names == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = list(dict.fromkeys((event["type"], event.get("output_index")) for event in events))
    assert kinds == [
        ("response.created", None),
        ("response.in_progress", None),
        ("response.output_item.added", 0),
        ("response.reasoning_text.delta", 0),
        ("response.output_item.done", 0),
        ("response.output_item.added", 1),
        ("response.content_part.added", 1),
        ("response.output_text.delta", 1),
        ("response.output_text.done", 1),
        ("response.content_part.done", 1),
        ("response.output_item.done", 1),
        ("response.output_item.added", 2),
        ("response.function_call_arguments.delta", 2),
        ("response.output_item.done", 2),
        ("response.completed", None),
    ]
    assert b"[DONE]" not in answer.body


async def test_ids_stay_the_same_through_a_stream(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING)
    events = (await world.post(PATH, {"input": "hi", "tools": [TOOL], "stream": True})).events()
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    last = events[-1]
    assert added == [item["id"] for item in done] == [item["id"] for item in last["response"]["output"]]
    assert {event["item_id"] for event in events if "item_id" in event} == set(added)
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    assert done == last["response"]["output"]
    assert "timings" in last


async def test_progress_is_told_while_the_prompt_is_read(world: ChatWorld) -> None:
    progress = SimpleNamespace(total=12, cache=1, processed=4, time_ms=5)
    world.engine.results = lambda task: [
        partial(task, b"", is_progress=True, progress=progress),
        final(task, b"a"),
    ]
    events = (await world.post(PATH, {"input": "hi", "stream": True, "return_progress": True})).events()
    assert [event["type"] for event in events][:3] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
    ]
    assert events[1]["prompt_progress"]["processed"] == 4


async def test_an_empty_reply_is_an_empty_message(world: ChatWorld) -> None:
    world.engine.results = whole("")
    assert (await world.post(PATH, {"input": "hi"})).json()["output"][0]["content"][0]["text"] == ""
    events = (await world.post(PATH, {"input": "hi", "stream": True})).events()
    assert events[-1]["response"]["output"][0]["type"] == "message"


async def test_an_error_in_a_stream_is_an_envelope(world: ChatWorld) -> None:
    world.engine.results = lambda task: [partial(task, b"a"), failure(task)]
    answer = await world.post(PATH, {"input": "hi", "stream": True})
    assert answer.events()[-1]["error"]["type"] == "server_error"


async def test_tokens_are_counted(world: ChatWorld) -> None:
    answer = (await world.post(f"{PATH}/input_tokens", {"input": "hi"})).json()
    await world.post(PATH, {"input": "hi"})
    assert answer == {"object": "response.input_tokens", "input_tokens": len(world.engine.tasks[0].tokens)}


def test_a_body_becomes_a_chat() -> None:
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
            CALL,
            {**CALL, "call_id": "c2"},
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        ],
        "tools": [{**TOOL, "strict": True}],
        "tool_choice": {"type": "function", "name": "get_weather"},
        "max_output_tokens": 7,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        "reasoning": {"effort": "low"},
        "store": True,
        "temperature": 0.5,
    }
    chat = chat_body(body)
    function = {"name": "f", "arguments": "{}"}
    assert chat == {
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "ok"}],
                "reasoning_content": "hmm",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": function},
                    {"id": "c2", "type": "function", "function": function},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ],
        "tools": [{"type": "function", "function": {**WEATHER, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "max_tokens": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}},
        },
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "input"),
        ({"input": 3}, "input"),
        ({"input": []}, "input"),
        ({"input": [3]}, "input"),
        ({"input": [{"type": "item_reference", "id": "a"}]}, "item_reference"),
        ({"input": [{"role": "user"}]}, "content"),
        ({"input": [{"role": 3, "content": "a"}]}, "role"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "arguments"),
        ({"input": "a", "previous_response_id": "r"}, "previous_response_id"),
        ({"input": "a", "tools": [{"type": "web_search"}]}, "tools"),
        ({"input": "a", "tools": 3}, "tools"),
        ({"input": "a", "max_output_tokens": "3"}, "max_output_tokens"),
        ({"input": "a", "text": 3}, "text"),
        ({"input": "a", "reasoning": {"effort": 3}}, "reasoning.effort"),
    ],
)
def test_a_fault_of_a_body_is_named(body: dict[str, Any], named: str) -> None:
    with pytest.raises(ApiError, match=named) as refused:
        chat_body(body)
    assert refused.value.status == 400


async def test_images_and_further_choices_are_refused(world: ChatWorld) -> None:
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}
    for body in ({"input": [image]}, {"input": "a", "n": 2}):
        assert (await world.post(PATH, body)).status == 400


async def test_the_official_client_reads_a_response(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    answer = await world.openai.responses.create(model="small", input="hi", tools=[TOOL])
    assert answer.output_text == "Let me see."
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]


async def test_the_official_client_reads_a_stream(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING)
    async with world.openai.responses.stream(model="small", input="hi", tools=[STRICT_TOOL]) as stream:
        answer = await stream.get_final_response()
    assert answer.output_text == "Let me see."
    call = answer.output[2]
    assert call.type == "function_call"
    assert json.loads(call.arguments) == {"city": "Oslo"}
