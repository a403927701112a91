"""Time limits, keep-alive comments and slow clients, with limits short enough to wait for (08 §3, §7)."""

from __future__ import annotations

import asyncio
import json

import pytest

from framework.runtime.lease import LeaseRefused, RetryVerdict
from tests.proxy.scripted_engine import Call, closing, finish, hang, piece, role
from tests.proxy.world import World, model
from tests.support.waiting import eventually

SHORT_S = 0.15
# For limits that must not be reached, also on a machine that is busy with something else.
ROOMY_S = 2.0
COMMENT = b": keep-alive\n\n"


async def ping_for_ever(call: Call) -> None:
    """Comments far more often than any limit, and nothing else."""
    await call.start_stream()
    while not call.closed.is_set():
        await call.raw(b":\n\n")
        await asyncio.sleep(0.01)


async def progress_for_ever(call: Call) -> None:
    await call.start_stream()
    while not call.closed.is_set():
        await call.events({**role(), "prompt_progress": {"total": 9, "processed": 1}})
        await asyncio.sleep(0.01)


async def stop_in_the_middle(call: Call) -> None:
    await call.start_stream()
    await call.events(piece("a"))
    while not call.closed.is_set():
        await call.raw(b":\n\n")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("script", [hang, ping_for_ever, progress_for_ever])
async def test_no_first_token_in_time(world: World, script: object) -> None:
    world.declare(model("smol", first_token_timeout_s=SHORT_S))
    world.engine.default = script  # type: ignore[assignment]
    world.fleet.verdicts = [RetryVerdict(retry=True)]
    call = await world.chat(stream=True)
    assert (call.status, call.error()["code"]) == (504, "first_token_timeout")
    assert "models.smol.timeout.first_token" in call.error()["message"]
    assert len(world.engine.calls) == 1
    assert world.fleet.failures == []
    assert world.fleet.open_leases == 0


async def test_an_answer_in_one_piece_has_the_same_limit(world: World) -> None:
    world.declare(model("smol", first_token_timeout_s=SHORT_S))
    world.engine.default = hang
    call = await world.ask("/v1/embeddings", {"model": "smol", "input": "x"})
    assert (call.status, call.error()["code"]) == (504, "first_token_timeout")


async def test_a_stream_that_stops_in_the_middle(world: World) -> None:
    world.declare(model("smol", stall_timeout_s=SHORT_S))
    world.engine.default = stop_in_the_middle
    call = await world.chat(stream=True)
    error = call.events()[-1]["error"]
    assert (error["code"], error["type"]) == ("stream_stalled", "timeout_error")
    assert "models.smol.timeout.stall" in error["message"]
    assert call.payloads()[-1] == "[DONE]"


async def test_a_collected_answer_that_stops_in_the_middle(world: World) -> None:
    world.declare(model("smol", stall_timeout_s=SHORT_S))
    world.engine.default = stop_in_the_middle
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (504, "stream_stalled")


async def test_a_slow_stream_lives(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        for _ in range(4):
            await asyncio.sleep(ROOMY_S * 0.3)
            await call.events(piece("a"))
        await call.events(finish())
        await call.end()

    world.declare(model("smol", stall_timeout_s=ROOMY_S))
    world.engine.default = play
    call = await world.chat(stream=True)
    assert not any("error" in event for event in call.events())


async def test_a_slow_client_is_no_stall(world: World) -> None:
    world.declare(model("smol", stall_timeout_s=ROOMY_S))
    world.engine.default = send_a_lot
    call = world.start_chat(stream=True)
    await call.until(b'"content"')
    call.reading.clear()
    await asyncio.sleep(ROOMY_S * 1.5)
    call.reading.set()
    await call.finished()
    assert call.payloads()[-1] == "[DONE]"
    assert not any("error" in event for event in call.events())


LOT = 400


async def send_a_lot(call: Call) -> None:
    """More than any buffer on the way holds."""
    data = b"data: " + json.dumps(piece("x" * 10_000)).encode() + b"\n\n"
    await call.start_stream()
    for _ in range(LOT):
        await call.raw(data)
    await call.events(finish())
    await call.end()


async def test_reading_from_the_engine_pauses_with_the_client(world: World) -> None:
    written: list[int] = []

    async def play(call: Call) -> None:
        data = b"data: " + json.dumps(piece("x" * 100_000)).encode() + b"\n\n"
        await call.start_stream()
        for number in range(200):
            await call.raw(data)
            written.append(number)
        await call.events(finish())
        await call.end()

    world.engine.default = play
    call = world.start_chat(stream=True)
    await call.until(b'"content"')
    call.reading.clear()
    paused_at = -1
    while paused_at != len(written):
        paused_at = len(written)
        await asyncio.sleep(0.5)
    assert paused_at < 150
    call.reading.set()
    await call.finished(20)
    assert len(written) == 200


async def test_a_client_that_takes_nothing_is_gone(world: World) -> None:
    world.limit(client_write_timeout_s=SHORT_S)
    world.engine.default = send_a_lot
    call = world.start_chat(stream=True)
    await call.until(b'"content"')
    call.reading.clear()
    await call.finished()
    assert world.records[0].status == 499
    assert world.fleet.open_leases == 0
    await asyncio.wait_for(world.engine.calls[0].closed.wait(), 20)


async def test_an_engine_that_takes_nothing_of_the_request(world: World) -> None:
    world.limit(write_timeout_s=SHORT_S)

    async def accept_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)

    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accept_only, "127.0.0.1", 0, limit=1)
    world.engine.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    call = await world.chat(padding="x" * 30_000_000)
    assert (call.status, call.error()["code"]) == (504, "connect_timeout")
    assert world.fleet.failures == []
    accepted[0].close()
    server.close()


@pytest.mark.parametrize("phase", ["waiting", "prefill"])
async def test_silence_is_filled_with_comments(world: World, phase: str) -> None:
    world.limit(keepalive_interval_s=0.05)
    world.engine.default = ping_for_ever
    if phase == "waiting":
        world.fleet.gate.clear()
    call = world.start_chat(stream=True)
    await call.until(COMMENT * 3)
    assert (call.status, call.headers["content-type"]) == (200, "text/event-stream")
    assert call.body.replace(COMMENT, b"") == b""
    call.gone.set()
    await call.finished()


async def test_an_error_after_a_comment_comes_in_the_stream(world: World) -> None:
    world.limit(keepalive_interval_s=0.05)
    world.fleet.gate.clear()
    call = world.start_chat(stream=True)
    await call.until(COMMENT)
    world.fleet.refusal = LeaseRefused("model_load_failed", "It did not start.")
    world.fleet.gate.set()
    await call.finished()
    assert call.status == 200
    assert call.events()[-1]["error"]["code"] == "model_load_failed"
    assert call.payloads()[-1] == "[DONE]"
    assert world.records[0].error == "model_load_failed"


async def test_a_retry_is_still_possible_after_a_comment(world: World) -> None:
    world.limit(keepalive_interval_s=0.05)

    async def play(call: Call) -> None:
        await asyncio.sleep(0.12)
        call.drop()

    world.engine.scripts = [play]
    world.fleet.verdicts = [RetryVerdict(retry=True)]
    call = await world.chat(stream=True)
    assert call.body.startswith(COMMENT)
    assert [e["choices"][0]["delta"].get("content") for e in call.events()] == [None, "Hel", "lo", None]


async def test_comments_stop_with_the_answer(world: World) -> None:
    world.limit(keepalive_interval_s=0.02)
    call = await world.chat(stream=True)
    messages = len(call.messages)
    await asyncio.sleep(0.1)
    assert len(call.messages) == messages


async def test_a_busy_stream_needs_no_comments(world: World) -> None:
    world.limit(keepalive_interval_s=0.1)

    async def play(call: Call) -> None:
        await call.start_stream()
        for _ in range(10):
            await asyncio.sleep(0.02)
            await call.events(piece("a"))
        await call.events(finish())
        await call.end()

    world.engine.default = play
    assert COMMENT not in (await world.chat(stream=True)).body


async def test_answers_without_stream_get_no_comments(world: World) -> None:
    world.limit(keepalive_interval_s=0.02)
    world.engine.default = hang
    call = world.start_chat()
    await eventually(lambda: world.engine.calls)
    await asyncio.sleep(0.1)
    assert call.status is None
    call.gone.set()
    await call.finished()


async def test_a_cancel_that_comes_after_the_answer_ends_nothing_twice(world: World) -> None:
    paused = asyncio.Event()

    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"))
        await paused.wait()
        await call.events(finish(), closing())
        await call.end()

    world.engine.default = play
    call = world.start_chat(stream=True)
    await call.until(b'"content"')
    call.reading.clear()
    paused.set()
    await eventually(lambda: not world.fleet.open_leases)
    for view in world.services.requests.views():
        world.services.requests.cancel(view.id)
    world.fleet.leases[0].revoked.set_result("shutting_down")
    await asyncio.sleep(0.02)
    call.reading.set()
    await call.finished()
    assert call.payloads().count("[DONE]") == 1
    assert not any("error" in event or "cancelled" in event for event in call.events())


async def test_a_comment_that_waits_for_the_client_is_sent_before_the_answer(world: World) -> None:
    world.limit(keepalive_interval_s=0.03)
    world.fleet.gate.clear()
    call = world.start_chat(stream=True)
    call.reading.clear()
    await asyncio.sleep(0.1)
    world.fleet.gate.set()
    await asyncio.sleep(0.1)
    call.reading.set()
    await call.finished()
    assert [message["type"] for message in call.messages].count("http.response.start") == 1
    assert call.messages[0]["type"] == "http.response.start"
    assert call.payloads()[-1] == "[DONE]"
    assert call.ended
