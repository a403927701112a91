"""Connections that break: one retry before the answer, none after it (08 §5)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from framework.runtime.lease import LeaseRefused, RetryVerdict
from tests.proxy.scripted_engine import CHUNK, Call, Script, finish, piece, role
from tests.proxy.world import World

RETRY = RetryVerdict(retry=True)


async def drop_at_once(call: Call) -> None:
    call.drop()


async def close_at_once(call: Call) -> None:
    call.writer.close()


async def drop_in_prefill(call: Call) -> None:
    await call.start_stream()
    await call.events({**role(), "id": "of-the-first-attempt"})
    await asyncio.sleep(0.01)
    call.drop()


async def end_without_anything(call: Call) -> None:
    await call.start_stream()
    await call.end(done=False)


async def cut_a_declared_body(call: Call) -> None:
    await call.start_stream(length=1000)
    await call.send(b": ping\n\n")
    call.writer.close()


async def talk_nonsense(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    call.writer.close()


async def drop_in_the_answer(call: Call) -> None:
    await call.start_stream()
    await call.events(role(), piece("a"))
    await asyncio.sleep(0.01)
    call.drop()


async def answer_as_a_stranger(call: Call) -> None:
    await call.start_stream()
    await call.events(role(), piece("stranger"), finish())
    await call.end()


BREAKS: list[Any] = [
    pytest.param(drop_at_once, id="reset"),
    pytest.param(close_at_once, id="closed"),
    pytest.param(drop_in_prefill, id="reset-in-prefill"),
    pytest.param(end_without_anything, id="empty-stream"),
    pytest.param(cut_a_declared_body, id="cut-body"),
    pytest.param(talk_nonsense, id="no-http"),
]


@pytest.mark.parametrize("script", BREAKS)
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_a_break_before_the_answer_is_tried_once_more(
    world: World, script: Script, streamed: bool
) -> None:
    world.engine.scripts = [script]
    world.fleet.verdicts = [RETRY]
    call = await world.chat(stream=streamed)
    assert call.status == 200
    (failure,) = world.fleet.failures
    assert (failure.instance, failure.opened, failure.released) == ("smol.0@1", False, True)
    assert [lease.instance for lease in world.fleet.leases] == ["smol.0@1", "smol.0@2"]
    assert world.fleet.open_leases == 0
    assert [(one.instance, one.retried) for one in world.records] == [("smol.0@2", True)]
    if streamed:
        assert call.body.count(b'"role"') == 1
        assert {event["id"] for event in call.events()} == {CHUNK["id"]}


async def test_a_port_that_nobody_listens_on_is_tried_once_more(world: World) -> None:
    url, world.engine.url = world.engine.url, "http://127.0.0.1:9"

    async def report(lease: Any, kind: Any, *, opened: bool) -> RetryVerdict:
        reports.append((kind, opened))
        world.engine.url = url
        return RETRY

    reports: list[Any] = []
    world.fleet.report_failure = report  # type: ignore[method-assign]
    assert (await world.chat()).status == 200
    assert reports == [("connect", False)]


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_who_answers_in_place_of_an_engine_that_has_ended_is_not_believed(
    world: World, streamed: bool
) -> None:
    # PL-06: somebody else got its port before its exit was seen.
    world.fleet.ended = {"smol.0@1"}
    world.fleet.verdicts = [RETRY]
    world.engine.scripts = [answer_as_a_stranger]
    call = await world.chat(stream=streamed)
    assert call.status == 200
    assert b"stranger" not in call.body
    (failure,) = world.fleet.failures
    assert (failure.instance, failure.opened) == ("smol.0@1", False)
    assert world.fleet.open_leases == 0


async def test_the_second_attempt_is_built_for_its_own_instance(world: World) -> None:
    async def play(call: Call) -> None:
        world.fleet.slot_context = 512
        call.drop()

    world.engine.scripts = [play]
    world.fleet.verdicts = [RETRY]
    await world.chat()
    assert [call.body["max_tokens"] for call in world.engine.calls] == [2048, 512]


async def test_one_warning_is_logged_for_a_retry(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.engine.scripts = [drop_at_once]
    world.fleet.verdicts = [RETRY]
    with caplog.at_level(logging.WARNING, "framework.proxy"):
        await world.chat()
    assert len(caplog.records) == 1
    assert "smol.0@1" in caplog.text


async def test_a_second_break_is_final(world: World) -> None:
    world.engine.default = drop_at_once
    world.fleet.verdicts = [RETRY, RETRY]
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (502, "connection_lost")
    assert len(world.engine.calls) == 2


async def test_a_retry_that_gets_no_instance_says_why(world: World) -> None:
    async def play(call: Call) -> None:
        world.fleet.refusal = LeaseRefused("model_load_failed", "It does not start.")
        call.drop()

    world.engine.default = play
    world.fleet.verdicts = [RETRY]
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (500, "model_load_failed")


@pytest.mark.parametrize(
    ("verdict", "status", "code", "retry_after"),
    [
        (RetryVerdict(False, "connection_lost"), 502, "connection_lost", None),
        (RetryVerdict(False, "connection_lost", 10.0), 502, "connection_lost", "10"),
        (RetryVerdict(False, "instance_restarting", 7.2), 503, "instance_restarting", "8"),
        (RetryVerdict(False, "instance_restarting"), 503, "instance_restarting", "1"),
        (RetryVerdict(False, "model_unloaded"), 503, "model_unloaded", "5"),
    ],
    ids=["lost", "lost-but-replaced-soon", "restarting", "restarting-now", "unloaded"],
)
async def test_the_fleet_decides_how_a_break_ends(
    world: World, verdict: RetryVerdict, status: int, code: str, retry_after: str | None
) -> None:
    world.engine.default = drop_at_once
    world.fleet.verdicts = [verdict]
    call = await world.chat(stream=True)
    assert (call.status, call.error()["code"]) == (status, code)
    assert call.headers.get("retry-after") == retry_after
    assert len(world.engine.calls) == 1


async def test_an_answer_that_has_begun_is_never_repeated(world: World) -> None:
    world.engine.default = drop_in_the_answer
    world.fleet.verdicts = [RETRY]
    call = await world.chat(stream=True)
    assert [e["choices"][0]["delta"] for e in call.events()[:-1]][-1] == {"content": "a"}
    assert call.events()[-1]["error"]["code"] == "stream_interrupted"
    assert call.events()[-1]["error"]["type"] == "upstream_error"
    assert call.payloads().count("[DONE]") == 1
    assert len(world.engine.calls) == 1
    assert world.fleet.failures[0].opened


async def test_half_an_answer_is_not_sold_as_a_whole_one(world: World) -> None:
    world.engine.default = drop_in_the_answer
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (502, "stream_interrupted")


async def test_a_stop_during_the_answer_is_no_crash(world: World) -> None:
    world.engine.default = drop_in_the_answer
    world.fleet.verdicts = [RetryVerdict(False, "model_unloaded")]
    call = await world.chat(stream=True)
    assert call.events()[-1]["error"]["code"] == "model_unloaded"


async def test_a_refusal_by_status_is_never_repeated(world: World) -> None:
    async def play(call: Call) -> None:
        await call.json(500, {"error": {"message": "no"}})

    world.engine.default = play
    world.fleet.verdicts = [RETRY]
    assert (await world.chat()).status == 502
    assert len(world.engine.calls) == 1
    assert world.fleet.failures == []


async def test_embeddings_are_tried_once_more_too(world: World) -> None:
    async def cut(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        call.writer.close()

    async def answer(call: Call) -> None:
        await call.json(200, {"data": []})

    world.engine.scripts, world.engine.default = [cut], answer
    world.fleet.verdicts = [RETRY]
    call = await world.ask("/v1/embeddings", {"model": "smol", "input": "x"})
    assert (call.status, call.json()) == (200, {"data": [], "model": "smol"})


async def test_events_after_the_end_mark_do_not_matter(world: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events(piece("a"), finish())
        await call.raw(b"data: [DONE]\n\ndata: {}\n\n")
        call.drop()

    world.engine.default = play
    call = await world.chat(stream=True)
    assert call.payloads()[-1] == "[DONE]"
    assert world.fleet.failures == []
