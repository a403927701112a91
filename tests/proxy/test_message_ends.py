"""Ends of messages that llama-server tells otherwise than the API does, and counts that it leaves out."""

from __future__ import annotations

import orjson
import pytest

from framework.proxy.message_whole import WholeMessage
from framework.proxy.messages_events import MessagesState, MessagesStream, usage_of
from framework.proxy.responses_events import ResponseFrame, ResponsesState, ResponsesStream
from framework.proxy.stream_events import StreamEvent
from tests.proxy.families import MESSAGES
from tests.proxy.scripted_engine import Call
from tests.proxy.world import World


def delta(stop_sequence: str | None) -> StreamEvent:
    data = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": stop_sequence},
        "usage": {"output_tokens": 3},
    }
    return StreamEvent("model", orjson.dumps(data), data)


@pytest.mark.parametrize(("text", "told"), [("I", "stop_sequence"), (None, "end_turn")])
def test_a_stop_sequence_is_told_as_one(text: str | None, told: str) -> None:
    stream = MessagesStream(MessagesState(), asked_model="m", request_id="r")
    sent = stream.take(delta(text)).rpartition(b"data: ")[2]
    assert orjson.loads(sent)["delta"] == {"stop_reason": told, "stop_sequence": text}
    whole = WholeMessage(MessagesState(), asked_model="m", request_id="r", limit_bytes=1000)
    whole.take(delta(text))
    assert (whole.result()["stop_reason"], whole.result()["stop_sequence"]) == (told, text)


def test_a_message_without_its_start_is_whole() -> None:
    whole = WholeMessage(MessagesState(), asked_model="m", request_id="r", limit_bytes=1000)
    whole.take(delta(None))
    message = whole.result()
    assert (message["id"], message["type"], message["content"]) == ("r", "message", [])
    assert message["usage"].keys() == {"input_tokens", "output_tokens"}


def test_a_response_without_its_openings_gets_them() -> None:
    state = ResponsesState()
    stream = ResponsesStream(state, ResponseFrame({}, "m", 1), request_id="r")
    data = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
    event = StreamEvent("model", orjson.dumps(data), data)
    state.observe(event)
    sent = [orjson.loads(part.partition(b"data: ")[2]) for part in stream.take(event).split(b"\n\n") if part]
    assert [one["type"] for one in sent] == [
        "response.created",
        "response.in_progress",
        "response.completed",
    ]
    assert [one["sequence_number"] for one in sent] == [0, 1, 2]
    assert {one["response"]["id"] for one in sent} == {"resp_1"}


def test_a_prompt_that_was_not_counted_is_not_free() -> None:
    assert "prompt_tokens" not in usage_of({"output_tokens": 1})
    assert usage_of({"input_tokens": 0, "output_tokens": 1})["prompt_tokens"] == 0


async def test_a_prompt_that_the_answer_does_not_count_is_asked_for(world: World) -> None:
    async def without_start(call: Call) -> None:
        await call.start_stream()
        await call.events(*MESSAGES.end)
        await call.end(done=False)

    async def counted(call: Call) -> None:
        await call.json(200, {"input_tokens": 31})

    for stream in (True, False):
        world.engine.scripts += [without_start, counted]
        call = await world.ask(MESSAGES.path, MESSAGES.request(stream=stream))
        assert call.status == 200
    assert call.json()["usage"] == {"input_tokens": 31, "output_tokens": 2}
    asked = world.engine.calls[1]
    assert (asked.path, "stream" in asked.body) == ("/v1/messages/count_tokens", False)
    assert [(one.prompt_tokens, one.generated_tokens) for one in world.records] == [(31, 2)] * 2
    assert world.fleet.open_leases == 0


async def test_an_engine_that_cannot_count_costs_nobody_the_answer(world: World) -> None:
    async def without_start(call: Call) -> None:
        await call.start_stream()
        await call.events(*MESSAGES.end)
        await call.end(done=False)

    async def refused(call: Call) -> None:
        await call.json(500, {"error": {"message": "no"}})

    world.engine.scripts += [without_start, refused]
    call = await world.ask(MESSAGES.path, MESSAGES.request(stream=False))
    assert (call.status, world.records[0].prompt_tokens) == (200, None)
