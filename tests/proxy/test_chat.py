"""Chats through the endpoint: streamed and not, and what engine and client get to see."""

from __future__ import annotations

import asyncio
import json

import pytest

from framework.values.manifest import ServerSettings
from tests.proxy.recording_fleet import TOKEN
from tests.proxy.scripted_engine import TIMINGS, USAGE, Call, chunk, closing, finish, piece, role
from tests.proxy.world import HELLO, World, model
from tests.support.waiting import eventually


async def test_a_chat_is_answered_as_one_object(world: World) -> None:
    call = await world.chat()
    assert call.status == 200
    assert call.headers["content-type"] == "application/json"
    assert call.json()["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    ]


async def test_a_chat_is_streamed(world: World) -> None:
    call = await world.chat(stream=True)
    assert call.headers["content-type"] == "text/event-stream"
    assert call.headers["cache-control"] == "no-cache"
    deltas = [event["choices"][0]["delta"] for event in call.events()]
    assert deltas == [{"role": "assistant", "content": None}, {"content": "Hel"}, {"content": "lo"}, {}]


async def test_a_stream_ends_with_the_end_mark_exactly_once(world: World) -> None:
    call = await world.chat(stream=True)
    assert call.payloads().count("[DONE]") == 1
    assert call.payloads()[-1] == "[DONE]"
    assert call.ended


async def test_usage_comes_to_those_who_ask(world: World) -> None:
    call = await world.chat(stream=True, stream_options={"include_usage": True})
    assert call.events()[-1]["usage"] == USAGE


async def test_timings_are_kept_without_usage(world: World) -> None:
    call = await world.chat(stream=True)
    assert call.events()[-1]["timings"] == TIMINGS
    assert not any("usage" in event for event in call.events())


async def test_the_answer_names_the_model_as_the_client_did(world: World) -> None:
    streamed = await world.chat(model="gpt", stream=True)
    assert {event["model"] for event in streamed.events()} == {"gpt"}
    assert (await world.chat(model="gpt")).json()["model"] == "gpt"


async def test_the_engine_is_always_asked_for_a_stream_with_usage(world: World) -> None:
    await world.chat()
    (call,) = world.engine.calls
    assert call.path == "/v1/chat/completions"
    assert call.body["stream"] is True
    assert call.body["stream_options"] == {"include_usage": True}


async def test_the_engine_gets_our_key_and_nothing_of_the_clients(world: World) -> None:
    headers = {
        "authorization": "Bearer client",
        "x-api-key": "client",
        "cookie": "a=b",
        "x-conversation-id": "1",
    }
    await world.ask("/v1/chat/completions", HELLO, headers=headers)
    sent = world.engine.calls[0].headers
    assert sent["authorization"] == f"Bearer {TOKEN}"
    assert not {"x-api-key", "cookie", "x-conversation-id"} & sent.keys()


async def test_each_generation_has_a_connection_of_its_own(world: World) -> None:
    await world.chat()
    await world.chat()
    assert [call.headers["connection"] for call in world.engine.calls] == ["close", "close"]


async def test_a_proxy_of_the_environment_is_ignored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert (await world.chat()).status == 200


async def test_sampling_follows_the_manifest_as_it_is_now(world: World) -> None:
    world.declare(model("smol", request_defaults={"temperature": 0.2}, request_drop=("top_k",)))
    await world.chat(top_k=5)
    sent = world.engine.calls[0].body
    assert sent["temperature"] == 0.2
    assert "top_k" not in sent
    assert sent["max_tokens"] == world.fleet.slot_context


async def test_the_lease_is_given_back(world: World) -> None:
    await world.chat()
    await world.chat(stream=True)
    assert len(world.fleet.leases) == 2
    assert world.fleet.open_leases == 0


async def test_headers_wait_for_the_first_piece(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(role())
        await call.raw(b":\n\n")
        await call.closed.wait()

    world.engine.default = play
    call = world.start_chat(stream=True)
    await eventually(lambda: [view.phase for view in world.services.requests.views()] == ["sent"])
    for _ in range(20):
        await _turn()
    assert call.status is None
    call.gone.set()
    await call.finished()


async def test_characters_split_over_segments_arrive_whole(world: World) -> None:
    data = b"data: " + json.dumps(piece("a😀b"), ensure_ascii=False).encode() + b"\n\n"
    cut = data.index("😀".encode()) + 2

    async def play(call: Call) -> None:
        await call.start_stream()
        await call.raw(data[:cut])
        await _turn()
        await call.raw(data[cut:])
        await call.events(finish())
        await call.end()

    world.engine.default = play
    assert (await world.chat()).json()["choices"][0]["message"]["content"] == "a😀b"


async def test_invalid_text_of_the_engine_is_no_fault(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.raw(b'data: {"choices":[{"index":0,"delta":{"content":"\xc3"}}]}\n\n')
        await call.raw(b"data: {broken\n\n")
        await call.events(finish())
        await call.end()

    world.engine.default = play
    call = await world.chat(stream=True)
    assert call.events()[0]["choices"][0]["delta"]["content"] == "\ufffd"


async def test_several_choices_are_kept_apart(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a", 0), piece("b", 1), finish("stop", 1), finish("length", 0))
        await call.end()

    world.engine.default = play
    choices = (await world.chat(n=2)).json()["choices"]
    assert [(c["message"]["content"], c["finish_reason"]) for c in choices] == [
        ("a", "length"),
        ("b", "stop"),
    ]


async def test_a_body_without_end_mark_but_with_a_finish_reason_is_complete(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"), finish(), closing())
        await call.end(done=False)

    world.engine.default = play
    call = await world.chat(stream=True)
    assert call.payloads()[-1] == "[DONE]"
    assert not any("error" in event for event in call.events())


async def test_a_body_that_ends_in_the_middle_is_truncated(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"))
        await call.end(done=False)

    world.engine.default = play
    streamed = await world.chat(stream=True)
    assert streamed.events()[-1]["error"]["code"] == "stream_truncated"
    assert streamed.payloads()[-1] == "[DONE]"
    whole = await world.chat()
    assert (whole.status, whole.error()["code"]) == (502, "stream_truncated")


async def test_an_error_event_before_the_answer_keeps_its_status(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events({"error": {"code": 400, "message": "bad grammar", "type": "invalid_request_error"}})
        await call.end(done=False)

    world.engine.default = play
    call = await world.chat(stream=True)
    assert (call.status, call.error()["message"]) == (400, "bad grammar")


async def test_an_error_event_in_the_answer_ends_the_stream(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"), {"error": {"code": 500, "message": "boom", "type": "server_error"}})
        await call.closed.wait()

    world.engine.default = play
    call = await world.chat(stream=True)
    error = call.events()[-1]["error"]
    assert (error["code"], error["message"], error["upstream_status"]) == ("upstream_error", "boom", 500)
    assert call.payloads().count("[DONE]") == 1


async def test_a_refusal_of_the_engine_is_passed_on(world: World) -> None:
    async def play(call: Call) -> None:
        refusal = {"code": 400, "message": "Field 'temperature': wrong", "type": "invalid_request_error"}
        await call.json(400, {"error": refusal})

    world.engine.default = play
    for streamed in (False, True):
        call = await world.chat(stream=streamed, temperature="0.7")
        assert (call.status, call.error()["message"]) == (400, "Field 'temperature': wrong")
    assert world.fleet.failures == []


async def test_an_answer_that_is_no_stream_is_refused(world: World) -> None:
    async def play(call: Call) -> None:
        await call.json(200, {"choices": []})

    world.engine.default = play
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (502, "upstream_protocol_error")


async def test_a_line_without_end_is_refused(world: World) -> None:
    world.limit(line_limit_bytes=1000)

    async def play(call: Call) -> None:
        await call.start_stream()
        await call.raw(b"data: " + b"x" * 2000)
        await call.closed.wait()

    world.engine.default = play
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (502, "upstream_protocol_error")


async def test_prompt_progress_is_streamed_to_those_who_ask(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events({**role(), "prompt_progress": {"total": 4, "processed": 2}})
        await call.events(role(), piece("a"), finish())
        await call.end()

    world.engine.default = play
    asked = await world.chat(stream=True, return_progress=True)
    assert asked.events()[0]["prompt_progress"] == {"total": 4, "processed": 2}
    not_asked = await world.chat(stream=True)
    assert not any("prompt_progress" in event for event in not_asked.events())


async def test_diffusion_frames_reach_the_client_untouched(world: World) -> None:
    frame = {"type": "diffusion_frame", "model": "x", "rows": [1]}

    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(frame, piece("a"), finish())
        await call.end()

    world.engine.default = play
    assert (await world.chat(model="gpt", stream=True)).events()[0] == frame
    assert "type" not in (await world.chat()).json()


async def test_unknown_fields_of_chunks_are_kept(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(
            chunk(choices=[{"index": 0, "delta": {"content": "a", "new": 1}}], newer=2), finish()
        )
        await call.end()

    world.engine.default = play
    first = (await world.chat(model="gpt", stream=True)).events()[0]
    assert (first["newer"], first["choices"][0]["delta"]["new"]) == (2, 1)


async def test_a_finished_request_is_recorded(world: World) -> None:
    await world.chat(stream=True)
    (record,) = world.records
    assert (record.model, record.replica, record.key, record.status) == ("smol", 0, None, 200)
    assert (record.route, record.stop_reason, record.error) == ("/v1/chat/completions", "stop", None)
    assert (record.prompt_tokens, record.generated_tokens) == (3, 2)
    assert (record.drafted, record.accepted) == (4, 1)
    assert (record.instance, record.stream, record.retried) == ("smol.0@1", True, False)
    assert record.texts is None
    assert record.first_token_s is not None
    assert 0 <= record.queue_s <= record.first_token_s <= record.total_s


@pytest.mark.parametrize("streamed", [True, False])
async def test_texts_are_taken_only_where_the_manifest_wants_them(world: World, streamed: bool) -> None:
    world.declare(model("smol"), server=ServerSettings(request_log="full"))
    call = await world.chat(stream=streamed, temperature=0.5)
    assert call.status == 200
    world.declare(model("smol"), server=ServerSettings(request_log="metadata"))
    await world.chat(stream=streamed)
    full, metadata = world.records
    assert full.texts is not None
    assert full.texts.asked["messages"] == [{"role": "user", "content": "hi"}]
    assert full.texts.asked["temperature"] == 0.5
    assert full.texts.answered["content"] != ""
    assert not full.texts.is_cut
    assert metadata.texts is None


async def _turn() -> None:
    """Let everything that is ready run."""
    await asyncio.sleep(0.002)
