"""Hostile engines and clients, for every family: no event and no body leads to a fault of ours."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework.proxy.engine_events import (
    EngineFrame,
    EngineState,
    EngineStream,
    WholeCompletion,
    read_engine_event,
)
from framework.proxy.errors import ProxyError
from framework.proxy.message_whole import WholeMessage
from framework.proxy.messages_events import MessagesState, MessagesStream, message_pieces, read_message_event
from framework.proxy.reasoning_answer import ReasoningForm, ReasoningView
from framework.proxy.responses_events import (
    ResponseFrame,
    ResponsesState,
    ResponsesStream,
    WholeResponse,
    read_response_event,
    response_pieces,
)
from framework.proxy.stream_events import read_event
from tests.proxy.families import COMPLETION, FAMILIES, MESSAGES, RESPONSES
from tests.proxy.world import World

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.just("\n\nevent: x")
TYPES = [*MESSAGES.opening, *MESSAGES.pieces, *MESSAGES.end, *RESPONSES.opening, *RESPONSES.end]
NAMES = st.sampled_from(
    [
        *("type", "index", "delta", "content_block", "message", "usage", "response", "item", "item_id"),
        *("content", "stop", "tokens", "timings", "choices", "finish_reason", "reasoning_content", "id"),
        *("text", "partial_json", "status", "output", "model", "tool_calls", "completion_probabilities"),
    ]
)
VALUES = st.recursive(
    SCALARS | st.sampled_from([event["type"] for event in TYPES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.lists(
    st.dictionaries(NAMES, VALUES, max_size=6)
    | st.sampled_from([*TYPES, *RESPONSES.pieces, *COMPLETION.end]),
    max_size=8,
)
ERROR = ProxyError("stream_stalled", "late")


def families() -> list[Any]:
    """Reader, state, stream and whole answer of each family."""
    messages, responses, engine = MessagesState(), ResponsesState(token_limit=1), EngineState()
    frame, engine_frame = ResponseFrame({}, "gpt", 1), EngineFrame("gpt", ("timings/x", "content"))
    return [
        (
            read_message_event,
            messages,
            MessagesStream(messages, asked_model="gpt", request_id="r"),
            WholeMessage(messages, asked_model="gpt", request_id="r", limit_bytes=10**6),
        ),
        (
            read_response_event,
            responses,
            ResponsesStream(responses, frame, request_id="r"),
            WholeResponse(responses, frame),
        ),
        (
            read_engine_event,
            engine,
            EngineStream(engine, engine_frame, request_id="r", wants_progress=True),
            WholeCompletion(engine_frame, with_tokens=True, limit_bytes=10**6),
        ),
    ]


@given(EVENTS, st.sampled_from(["finish", "cancelled", "fail"]))
def test_whatever_an_engine_sends_becomes_a_sound_stream(events: list[Any], end: str) -> None:
    for read, state, stream, whole in families():
        out = b""
        for payload in map(orjson.dumps, events):
            event = read(payload)
            if event is None or event.kind in {"error", "done"}:
                continue
            state.observe(event)
            list(message_pieces(event))
            list(response_pieces(event))
            whole.take(read(payload))
            out += stream.take(event)
        out += stream.fail(ERROR) if end == "fail" else getattr(stream, end)()
        orjson.dumps(whole.result())
        for frame in out.decode().split("\n\n")[:-1]:
            *names, data = frame.split("\n")
            assert len(names) <= 1
            assert all(name.startswith("event: ") for name in names)
            json.loads(data.removeprefix("data: "))


@given(EVENTS, st.booleans())
def test_no_event_breaks_the_view_of_reasoning(events: list[Any], inline: bool) -> None:
    view = ReasoningView(ReasoningForm("inline" if inline else "split"), limit_bytes=10**6)
    for payload in map(orjson.dumps, events):
        event = read_event(payload)
        if event is not None and event.kind not in {"error", "done"}:
            for passed in view.take([event]):
                orjson.loads(passed.payload)
    view.finish()


@pytest.mark.parametrize("name", [*FAMILIES, "chat"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(body=st.dictionaries(NAMES | st.sampled_from(["messages", "input", "system", "tools"]), VALUES))
async def test_no_body_leads_to_a_fault(world: World, name: str, body: dict[str, Any]) -> None:
    async def refuse(call: Any) -> None:
        await call.json(400, {"error": {"code": 400, "message": "no", "type": "invalid_request_error"}})

    world.engine.default = refuse
    path = "/v1/chat/completions" if name == "chat" else FAMILIES[name].path
    given = {"messages": [{"role": "user", "content": "x"}], "input": "x", "prompt": "x", "stream": True}
    call = await world.ask(path, {**given, **body, "model": "smol"})
    assert call.status in {400, 404}
    assert call.error()["code"] != "internal_error"
    assert world.fleet.open_leases == 0
