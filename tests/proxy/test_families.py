"""What holds for every generation route: limits, one retry, cancel, accounts, errors in its own form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from framework.runtime.lease import RetryVerdict
from tests.proxy.families import FAMILIES, MESSAGES, RESPONSES, Family, block, delta, named_events, partial
from tests.proxy.scripted_engine import Call, hang
from tests.proxy.world import World, model
from tests.support.waiting import eventually

SHORT_S = 0.15
ENGINE_ERROR = {"error": {"code": 500, "message": "out of luck", "type": "server_error"}}


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def family(request: pytest.FixtureRequest) -> Iterator[Family]:
    found: Family = request.param
    yield found


def in_stream(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The error object of a stream's last event."""
    found: dict[str, Any] = events[-1]["error"]
    return found


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_an_answer_comes_under_the_asked_name(world: World, family: Family, stream: bool) -> None:
    world.engine.default = family.answer
    call = await world.ask(family.path, family.request(stream=stream))
    assert call.status == 200
    if stream:
        assert family.said(call.events()) == "Hello"
        assert call.payloads().count("[DONE]") == 0
        assert b'"smol"' not in call.body
    else:
        assert family.text(call.json()) == "Hello"
        assert call.json()["model"] == "gpt"
    sent = world.engine.calls[0].body
    assert (world.engine.calls[0].path, sent["model"], sent["stream"]) == (family.path, "smol", True)
    record = world.records[0]
    assert (record.route, record.status, record.stop_reason) == (family.path, 200, "stop")
    assert (record.prompt_tokens, record.generated_tokens) == (3, 2)
    assert record.first_token_s is not None
    assert world.fleet.open_leases == 0


async def test_nothing_of_an_answer_in_time(world: World, family: Family) -> None:
    async def open_only(call: Call) -> None:
        await call.start_stream()
        await call.events(*family.opening)
        await call.closed.wait()

    world.declare(model("smol", aliases=("gpt",), first_token_timeout_s=SHORT_S))
    world.engine.default = open_only
    call = await world.ask(family.path, family.request(stream=True))
    assert (call.status, call.error()["code"]) == (504, "first_token_timeout")


async def test_an_engine_that_stops_in_the_middle(world: World, family: Family) -> None:
    async def stop(call: Call) -> None:
        await family.begin(call)
        await call.closed.wait()

    world.declare(model("smol", aliases=("gpt",), stall_timeout_s=SHORT_S))
    world.engine.default = stop
    streamed = await world.ask(family.path, family.request(stream=True))
    assert in_stream(streamed.events())["code"] == "stream_stalled"
    assert b"[DONE]" not in streamed.body
    whole = await world.ask(family.path, family.request())
    assert (whole.status, whole.error()["code"]) == (504, "stream_stalled")


async def test_a_break_before_the_answer_shows_once(world: World, family: Family) -> None:
    async def lose(call: Call) -> None:
        await call.start_stream()
        await call.events(*family.opening)
        call.drop()

    world.engine.scripts, world.engine.default = [lose], family.answer
    world.fleet.verdicts = [RetryVerdict(retry=True)]
    call = await world.ask(family.path, family.request(stream=True))
    assert family.said(call.events()) == "Hello"
    assert len(call.events()) == len((*family.opening, *family.pieces, *family.end))
    assert (len(world.engine.calls), world.records[0].retried) == (2, True)


async def test_a_break_in_the_middle_is_told_and_nothing_repeated(world: World, family: Family) -> None:
    async def lose(call: Call) -> None:
        await family.begin(call)
        call.drop()

    world.engine.default = lose
    call = await world.ask(family.path, family.request(stream=True))
    assert in_stream(call.events())["code"] == "stream_interrupted"
    assert len(world.engine.calls) == 1


async def test_half_an_answer_is_not_sold_as_a_whole_one(world: World, family: Family) -> None:
    async def end_early(call: Call) -> None:
        await family.begin(call)
        await call.end(done=False)

    world.engine.default = end_early
    call = await world.ask(family.path, family.request())
    assert (call.status, call.error()["code"]) == (502, "stream_truncated")


async def test_an_error_of_the_engine_in_the_stream(world: World, family: Family) -> None:
    async def fail(call: Call) -> None:
        await family.begin(call)
        await call.events(ENGINE_ERROR)
        await call.end(done=False)

    world.engine.default = fail
    call = await world.ask(family.path, family.request(stream=True))
    assert in_stream(call.events())["code"] == "upstream_error"
    assert in_stream(call.events())["request_id"] == call.headers["x-request-id"]


async def test_a_client_that_leaves_ends_the_work(world: World, family: Family) -> None:
    async def go_on(call: Call) -> None:
        await family.begin(call)
        await call.closed.wait()

    world.engine.default = go_on
    call = world.call(family.path, family.request(stream=False))
    await eventually(lambda: world.services.requests.views() and world.fleet.leases)
    call.gone.set()
    await call.finished()
    await eventually(lambda: world.engine.calls and world.engine.calls[0].closed.is_set())
    assert world.fleet.open_leases == 0
    assert world.records[0].status == 499


async def test_a_cancel_by_command_ends_the_stream_as_it_ends(world: World, family: Family) -> None:
    async def go_on(call: Call) -> None:
        await family.begin(call)
        await call.closed.wait()

    world.engine.default = go_on
    call = world.call(family.path, family.request(stream=True))
    await eventually(lambda: [v for v in world.services.requests.views() if v.phase == "streaming"])
    request_id = world.services.requests.views()[0].id
    await world.ask(f"/v1/requests/{request_id}/cancel", {})
    await call.finished()
    last = call.events()[-1]
    assert last.get("type", "") == {"response.completed": "response.incomplete"}.get(family.last, family.last)
    assert world.records[-1].error == "cancelled"


async def test_a_model_that_loads_shows_signs_of_life(world: World, family: Family) -> None:
    world.limit(keepalive_interval_s=0.02)
    world.engine.default = family.answer
    world.fleet.gate.clear()
    call = world.call(family.path, family.request(stream=True))
    await call.until(b": keep-alive\n\n")
    world.fleet.gate.set()
    await call.finished()
    assert family.said(call.events()) == "Hello"


async def test_the_texts_of_a_request_are_kept(world: World, family: Family) -> None:
    world.declare(model("smol", aliases=("gpt",)))
    manifest = world.current.manifest
    world.current.manifest = replace(manifest, server=replace(manifest.server, request_log="full"))
    world.engine.default = family.answer
    await world.ask(family.path, family.request())
    texts = world.records[0].texts
    assert texts is not None
    assert texts.answered == {"content": "Hello"}


@pytest.mark.parametrize(
    ("overflow_to", "status", "asked"),
    [(None, 400, ["smol"]), ("wide", 200, ["smol", "big"]), ("smol", 400, ["smol"])],
    ids=["none", "named", "itself"],
)
async def test_a_prompt_that_is_too_long_goes_where_the_manifest_says(
    world: World, family: Family, overflow_to: str | None, status: int, asked: list[str]
) -> None:
    async def refuse(call: Call) -> None:
        error = {"code": 400, "message": "too long", "type": "exceed_context_size_error"}
        await call.json(400, {"error": {**error, "n_prompt_tokens": 900, "n_ctx": 512}})

    world.declare(model("smol", aliases=("gpt",), overflow_to=overflow_to), model("big", aliases=("wide",)))
    world.engine.scripts, world.engine.default = [refuse], family.answer
    call = await world.ask(family.path, family.request())
    assert call.status == status
    assert [name for name, _ in world.fleet.acquired] == asked
    if status == 200:
        assert (call.json()["model"], world.records[0].model) == ("wide", "big")
    else:
        error = call.error()
        assert (error["code"], error["n_prompt_tokens"], error["n_ctx"]) == (
            "context_length_exceeded",
            900,
            512,
        )


# Forms of their own


async def test_events_of_a_message_have_their_names_and_places(world: World) -> None:
    world.engine.default = MESSAGES.answer
    found = named_events(await world.ask("/v1/messages", MESSAGES.request(stream=True)))
    assert [name for name, _ in found] == [event["type"] for _, event in found]
    assert found[0][1]["message"]["model"] == "gpt"
    assert found[0][1]["message"]["usage"]["cache_read_input_tokens"] == 2


async def test_a_whole_message_counts_what_its_engine_counted(world: World) -> None:
    world.engine.default = MESSAGES.answer
    answer = (await world.ask("/v1/messages", MESSAGES.request())).json()
    assert answer["usage"] == {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 2}
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("end_turn", None)


async def test_a_message_that_thinks_and_calls_a_tool(world: World) -> None:
    async def play(call: Call) -> None:
        start = {"type": "content_block_start"}
        await call.start_stream()
        await call.events(
            *MESSAGES.opening,
            {**start, "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {**block(""), "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {**start, "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
            {**block(""), "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
            {**block(""), "index": 1, "delta": {"type": "input_json_delta", "partial_json": "-1.5}"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        )
        await call.end(done=False)

    world.engine.default = play
    answer = (await world.ask("/v1/messages", MESSAGES.request())).json()
    assert answer["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": -1.5}},
    ]
    assert world.records[0].stop_reason == "tool_calls"


async def test_events_of_a_response_are_given_their_places(world: World) -> None:
    world.engine.default = RESPONSES.answer
    found = named_events(
        await world.ask("/v1/responses", RESPONSES.request(stream=True, metadata={"a": "b"}))
    )
    events = [event for _, event in found]
    assert [name for name, _ in found] == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    pieces = [event for event in events if event["type"] == "response.output_text.delta"]
    assert {(event["output_index"], event["content_index"]) for event in pieces} == {(0, 0)}
    last = events[-1]
    assert (last["response"]["model"], last["response"]["metadata"]) == ("gpt", {"a": "b"})
    assert last["timings"]["predicted_n"] == 2


async def test_a_call_of_a_tool_has_a_place_of_its_own(world: World) -> None:
    call_item = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""}
    piece = {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"}

    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(*RESPONSES.opening, *RESPONSES.pieces)
        await call.events({"type": "response.output_item.added", "item": call_item}, piece, delta("!"))
        await call.events({"type": "response.output_item.done", "item": call_item}, *RESPONSES.end)
        await call.end(done=False)

    world.engine.default = play
    events = (await world.ask("/v1/responses", RESPONSES.request(stream=True))).events()
    placed = [event for event in events if "output_index" in event]
    places = [(event["type"].split(".")[1], event["output_index"]) for event in placed]
    assert places == [
        *(("output_item", 0), ("output_text", 0), ("output_text", 0), ("output_item", 1)),
        *(("function_call_arguments", 1), ("output_text", 0), ("output_item", 1), ("output_item", 0)),
    ]


@pytest.mark.parametrize(
    ("asked", "slot_context", "status"),
    [(9, 2048, "completed"), (2, 2048, "incomplete"), (9, 5, "incomplete")],
    ids=["its-own-end", "limit", "full-context"],
)
async def test_what_a_limit_ended_is_not_called_complete(
    world: World, asked: int, slot_context: int, status: str
) -> None:
    world.fleet.slot_context = slot_context
    world.engine.default = RESPONSES.answer
    answer = (await world.ask("/v1/responses", RESPONSES.request(max_output_tokens=asked))).json()
    assert answer["status"] == status
    assert (answer["incomplete_details"] is None) == (status == "completed")
    assert world.records[0].stop_reason == ("stop" if status == "completed" else "length")


async def test_what_an_engine_tells_itself_stays(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(*RESPONSES.opening, {**delta("x"), "output_index": 7, "sequence_number": 41})
        await call.events(*RESPONSES.end)
        await call.end(done=False)

    world.engine.default = play
    events = (await world.ask("/v1/responses", RESPONSES.request(stream=True))).events()
    assert (events[2]["output_index"], events[2]["sequence_number"]) == (7, 41)


async def test_several_completions_are_a_list(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.raw(b"data: null\n\n")
        last = {"content": "", "stop": True, "stop_type": "limit", "tokens_predicted": 1}
        await call.events(partial("b", 1), partial("a"), {**last, "index": 1}, {**last, "index": 0})
        await call.end(done=False)

    world.engine.default = play
    answer = (await world.ask("/completion", {"prompt": ["x", "y"], "return_tokens": True})).json()
    assert [(one["content"], one["tokens"]) for one in answer] == [("a", [1]), ("b", [1])]
    assert world.records[0].stop_reason == "length"


@pytest.mark.parametrize("path", ["/v1/messages", "/messages", "/m/gpt/v1/messages", "/v1/messages/nothing"])
async def test_errors_of_messages_are_anthropics(world: World, path: str) -> None:
    error = (await world.ask(path, {"messages": 5, "max_tokens": 1})).json()
    assert error["type"] == "error"
    assert error["error"]["type"] in {"invalid_request_error", "not_found_error"}
    assert error["request_id"] == error["error"]["request_id"]


async def test_a_message_that_waits_too_long_is_told_in_its_words(world: World) -> None:
    world.declare(model("smol", aliases=("gpt",), first_token_timeout_s=SHORT_S))
    world.engine.default = hang
    call = await world.ask("/v1/messages", MESSAGES.request())
    assert (call.status, call.json()["error"]["type"]) == (504, "timeout_error")
