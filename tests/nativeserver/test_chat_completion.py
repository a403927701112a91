"""Shapes of `/v1/chat/completions`, and the official client on them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from tests.nativeserver import drafting
from tests.nativeserver.chat_world import CALLING, TOOL, ChatWorld, chat_world, streamed, whole
from tests.nativeserver.generation_world import failure, final, partial

PATH = "/v1/chat/completions"
CHAT = {"messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}
RECORD = SimpleNamespace(chosen=SimpleNamespace(token=97, piece=b"a", probability=1.0), top=[])


@pytest.fixture
async def world() -> AsyncIterator[ChatWorld]:
    async with chat_world() as made:
        yield made


def deltas(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice["delta"] for event in events for choice in event["choices"]]


async def test_an_answer_has_its_members_in_order(world: ChatWorld) -> None:
    answer = (await world.post(PATH, {**CHAT, "model": "other"})).json()
    assert list(answer) == [
        *("choices", "created", "model", "system_fingerprint", "object", "usage", "id", "timings")
    ]
    message = {"role": "assistant", "content": "hello"}
    assert answer["choices"] == [{"finish_reason": "stop", "index": 0, "message": message}]
    assert (answer["object"], answer["model"]) == ("chat.completion", "small")
    assert answer["id"] == world.engine.tasks[0].completion_id
    assert world.prompt == "<|im_start|>user\nhi<|im_end|><|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("stop", "text", "reason"),
    [
        ("eos", "hi", "stop"),
        ("word", "hi", "stop"),
        ("limit", "hi", "length"),
        ("eos", CALLING, "tool_calls"),
        ("limit", CALLING, "length"),
    ],
)
async def test_why_a_choice_ended(world: ChatWorld, stop: str, text: str, reason: str) -> None:
    for stream in (False, True):
        world.engine.results = (streamed if stream else whole)(text, stop=stop)
        answer = await world.post(PATH, {**CHAT, "tools": [TOOL], "stream": stream})
        last = answer.events()[-1] if stream else answer.json()
        assert last["choices"][0]["finish_reason"] == reason


async def test_the_parts_of_a_reply_have_fields_of_their_own(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    message = (await world.post(PATH, {**CHAT, "tools": [TOOL]})).json()["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Let me see.", "hmm\n")
    (call,) = message["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    assert (call["type"], len(call["id"])) == ("function", 32)


@pytest.mark.parametrize(
    ("begun", "content", "reasoning"),
    [
        ({"content": "Oh, "}, "Oh, hello", None),
        ({"content": "Oh, ", "reasoning_content": "hm"}, "Oh, hello", "hm"),
        ({"content": "", "reasoning_content": "hm "}, "", "hm hello"),
    ],
)
async def test_an_answer_begins_with_what_the_client_wrote_of_it(
    world: ChatWorld, begun: dict[str, str], content: str, reasoning: str | None
) -> None:
    body = {"messages": [*CHAT["messages"], {"role": "assistant", **begun}]}
    message = (await world.post(PATH, body)).json()["choices"][0]["message"]
    assert (message["content"], message.get("reasoning_content")) == (content, reasoning)
    world.engine.results = streamed("hello")
    told = deltas((await world.post(PATH, {**body, "stream": True})).events())
    for name, text in (("content", content), ("reasoning_content", reasoning or "")):
        assert "".join(delta.get(name) or "" for delta in told) == text


@pytest.mark.parametrize("name", ["none", "auto", "deepseek", "deepseek-legacy"])
async def test_only_the_format_none_leaves_reasoning_in_the_content(world: ChatWorld, name: str) -> None:
    text = "<think>\nhmm\n</think>\n\n bar"
    world.engine.results = whole(text)
    message = (await world.post(PATH, {**CHAT, "reasoning_format": name})).json()["choices"][0]["message"]
    split = {"role": "assistant", "content": " bar", "reasoning_content": "hmm\n"}
    assert message == ({"role": "assistant", "content": text} if name == "none" else split)


async def test_a_reply_that_only_calls_has_no_content(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING[CALLING.index("<tool_call>") :])
    message = (await world.post(PATH, {**CHAT, "tools": [TOOL]})).json()["choices"][0]["message"]
    assert message["content"] is None


async def test_calls_stay_text_without_tools(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    for more in ({}, {"tools": [TOOL], "tool_choice": "none"}):
        message = (await world.post(PATH, {**CHAT, **more})).json()["choices"][0]["message"]
        assert message["content"] == CALLING.partition("\n\n")[2]
        assert "tool_calls" not in message


async def test_a_stream_says_what_the_whole_says(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING, size=1)
    answer = await world.post(PATH, {**STREAM, "tools": [TOOL]})
    told = deltas(answer.events())
    assert told[0] == {"role": "assistant", "content": None}
    assert told[-1] == {}
    assert "".join(delta.get("content") or "" for delta in told) == "Let me see."
    assert "".join(delta.get("reasoning_content", "") for delta in told) == "hmm\n"
    calls = [call for delta in told for call in delta.get("tool_calls", [])]
    assert [call["function"].get("name") for call in calls].count("get_weather") == 1
    assert "".join(call["function"]["arguments"] for call in calls) == '{"city": "Oslo"}'
    assert ["id" in call for call in calls] == [True, *[False] * (len(calls) - 1)]
    assert answer.payloads()[-1] == "[DONE]"


async def test_characters_of_several_bytes_arrive_whole(world: ChatWorld) -> None:
    world.engine.results = streamed("日本語 🎈", size=1)
    told = deltas((await world.post(PATH, STREAM)).events())
    assert "".join(delta.get("content") or "" for delta in told) == "日本語 🎈"


async def test_timings_stand_at_the_very_end(world: ChatWorld) -> None:
    world.engine.results = streamed("abc")
    events = (await world.post(PATH, STREAM)).events()
    assert ["timings" in event for event in events] == [False, False, True]
    asked = {**STREAM, "stream_options": {"include_usage": True}}
    events = (await world.post(PATH, asked)).events()
    assert ["timings" in event for event in events] == [False, False, False, True]
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 5
    assert "usage" not in events[-2]


async def test_partials_have_timings_when_the_engine_measured_them(world: ChatWorld) -> None:
    world.engine.results = lambda task: [partial(task, b"a", has_timings=True), final(task)]
    events = (await world.post(PATH, {**STREAM, "timings_per_token": True})).events()
    assert ["timings" in event for event in events] == [False, True, True]


async def test_progress_comes_as_chunks_with_the_role(world: ChatWorld) -> None:
    progress = SimpleNamespace(total=12, cache=1, processed=4, time_ms=5)
    world.engine.results = lambda task: [
        partial(task, b"", is_progress=True, progress=progress),
        partial(task, b"a"),
        final(task),
    ]
    events = (await world.post(PATH, {**STREAM, "return_progress": True})).events()
    assert events[0]["prompt_progress"] == {"total": 12, "cache": 1, "processed": 4, "time_ms": 5}
    role = {"role": "assistant", "content": None}
    assert deltas(events) == [role, role, {"content": "a"}, {}]


async def test_log_probabilities_stand_with_the_text_of_their_tokens(world: ChatWorld) -> None:
    wish = {"logprobs": True, "top_logprobs": 1}
    world.engine.results = lambda task: [final(task, b"a", records=[RECORD])]
    choice = (await world.post(PATH, {**CHAT, **wish})).json()["choices"][0]
    assert choice["logprobs"]["content"][0]["token"] == "a"
    assert world.engine.tasks[0].params.n_probs == 1
    world.engine.results = lambda task: [
        partial(task, b"<thi", records=[RECORD]),
        partial(task, b"s", records=[RECORD]),
        final(task),
    ]
    choices = [event["choices"][0] for event in (await world.post(PATH, {**STREAM, **wish})).events()]
    assert [len(choice.get("logprobs", {"content": []})["content"]) for choice in choices] == [0, 2, 0]


async def test_choices_are_in_one_object_and_all_are_counted(world: ChatWorld) -> None:
    world.engine.results = lambda task: [final(task, b"ab", n_decoded=5 + 2 * task.index, n_prompt_tokens=10)]
    answer = (await world.post(PATH, {**CHAT, "n": 2})).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 12, 22)


async def test_streamed_choices_have_states_of_their_own(world: ChatWorld) -> None:
    tasks: list[Any] = []

    def together(task: Any) -> list[Any]:
        tasks.append(task)
        if len(tasks) < 2:
            return []
        one, two = tasks
        return [
            partial(one, b"<think>a"),
            partial(two, b"b"),
            partial(one, b"</think>c"),
            *(final(task) for task in tasks),
        ]

    world.engine.results = together
    events = (await world.post(PATH, {**STREAM, "n": 2})).events()
    told = [(choice["index"], choice["delta"]) for event in events for choice in event["choices"]]
    role = {"role": "assistant", "content": None}
    assert [delta for index, delta in told if index == 1] == [role, {"content": "b"}, {}]
    assert [delta for index, delta in told if index == 0] == [
        role,
        {"reasoning_content": "a"},
        {"content": "c"},
        {},
    ]


async def test_reports_come_only_when_asked_for(world: ChatWorld) -> None:
    guard = drafting.guard_report(visible_tokens=5)
    world.engine.results = whole("Hello", loop_guard=guard)
    answer = (await world.post(PATH, {**CHAT, "engine_report": True})).json()
    assert answer["engine_report"]["visible_output_tokens"] == 5
    assert "__verbose" not in answer
    answer = (await world.post(PATH, {**CHAT, "verbose": True})).json()
    assert answer["__verbose"]["prompt"] == world.prompt
    assert "engine_report" in answer


async def test_required_calls_have_a_grammar_and_possible_calls_a_trigger(world: ChatWorld) -> None:
    for choice, is_lazy in (("required", False), ("auto", True)):
        await world.post(PATH, {**CHAT, "tools": [TOOL], "tool_choice": choice})
        sampling = world.engine.tasks[-1].params.sampling
        assert sampling.grammar_lazy is is_lazy
        assert "get_weather" in sampling.grammar
        assert bool(sampling.grammar_triggers) is is_lazy


async def test_an_error_in_a_stream_ends_it_without_the_end_mark(world: ChatWorld) -> None:
    world.engine.results = lambda task: [partial(task, b"a"), failure(task)]
    answer = await world.post(PATH, STREAM)
    assert json.loads(answer.payloads()[-1]) == {
        "error": {"code": 500, "message": "broken", "type": "server_error"}
    }


async def test_an_error_at_once_is_an_answer(world: ChatWorld) -> None:
    world.engine.results = lambda task: [failure(task, "exceed_context_size", b"long", n_ctx=7)]
    answer = await world.post(PATH, STREAM)
    assert (answer.status, answer.error()["type"]) == (400, "exceed_context_size_error")


@pytest.mark.parametrize(
    "body", [{}, {"messages": 3}, {"messages": []} | {"n": 0}, {**CHAT, "tools": 5}, {**CHAT, "n": 9}]
)
async def test_what_cannot_be_read_is_refused(world: ChatWorld, body: dict[str, Any]) -> None:
    answer = await world.post(PATH, body)
    assert (answer.status, answer.error()["type"]) == (400, "invalid_request_error")


async def test_the_official_client_reads_a_reply(world: ChatWorld) -> None:
    world.engine.results = whole(CALLING)
    answer = await world.openai.chat.completions.create(
        model="small", messages=[{"role": "user", "content": "hi"}], tools=[TOOL]
    )
    message = answer.choices[0].message
    assert message.content == "Let me see."
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


async def test_the_official_client_reads_a_stream(world: ChatWorld) -> None:
    world.engine.results = streamed(CALLING)
    tool: Any = {**TOOL, "function": {**TOOL["function"], "strict": True}}
    async with world.openai.chat.completions.stream(
        model="small", messages=[{"role": "user", "content": "hi"}], tools=[tool]
    ) as stream:
        answer = await stream.get_final_completion()
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Let me see.", "tool_calls")
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].function.arguments == '{"city": "Oslo"}'


async def test_the_official_client_gives_results_of_calls_back(world: ChatWorld) -> None:
    await world.openai.chat.completions.create(
        model="small",
        messages=[
            {"role": "user", "content": "weather?"},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ],
    )
    assert '"arguments": {"city": "Oslo"}' in world.prompt
    assert "tool for c1\nrain<|im_end|>" in world.prompt


async def test_the_official_client_knows_the_errors(world: ChatWorld) -> None:
    with pytest.raises(openai.BadRequestError, match="top_logprobs"):
        await world.openai.chat.completions.create(
            model="small", messages=[{"role": "user", "content": "hi"}], top_logprobs=3
        )
