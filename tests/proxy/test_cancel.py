"""Leaving, cancelling and revoking, in every phase of a request (08 §4; cases PX-01, PX-03, MR-15)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from framework.runtime.lease import RevokeCode
from framework.values.manifest import AccessKey
from tests.proxy.asgi_client import AsgiCall
from tests.proxy.scripted_engine import CHUNK, Call, hang, piece
from tests.proxy.world import World, model
from tests.support.waiting import eventually

LATENCY_S = 10.0
SECRETS = {
    "secret": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
    "other": "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa",
}


async def stream_for_ever(call: Call) -> None:
    """A piece, then silence until the other side goes."""
    await call.start_stream()
    await call.events(piece("a"))
    await call.closed.wait()


async def prefill_for_ever(call: Call) -> None:
    """Headers and pings, as an engine that works through a prompt."""
    await call.start_stream()
    while not call.closed.is_set():
        await call.raw(b":\n\n")
        await asyncio.sleep(0.02)


async def refuse_to_read(call: Call) -> None:
    """Take the connection and nothing more."""
    call.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await call.closed.wait()


PHASES = {"sent": hang, "prefill": prefill_for_ever, "streaming": stream_for_ever}


async def begun(world: World, phase: str, **fields: Any) -> AsgiCall:
    """A chat that has come as far as this phase."""
    if phase == "waiting":
        world.fleet.gate.clear()
        call = world.start_chat(**fields)
        await eventually(lambda: world.fleet.waiting == 1)
        return call
    world.engine.default = PHASES[phase]
    call = world.start_chat(**fields)
    await eventually(lambda: world.engine.calls)
    if phase == "streaming":
        await eventually(lambda: world.services.requests.views()[0].phase == "streaming")
    return call


def request_id(world: World) -> str:
    """The id of the only active request."""
    (view,) = world.services.requests.views()
    return view.id


EVERY_PHASE = pytest.mark.parametrize("phase", ["waiting", "sent", "prefill", "streaming"])
BOTH_FORMS = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])


@EVERY_PHASE
@BOTH_FORMS
async def test_a_client_that_leaves_frees_everything(world: World, phase: str, streamed: bool) -> None:
    call = await begun(world, phase, stream=streamed)
    left = time.monotonic()
    call.gone.set()
    await call.finished()
    for upstream in world.engine.calls:
        await asyncio.wait_for(upstream.closed.wait(), LATENCY_S)
    assert time.monotonic() - left < LATENCY_S
    assert world.fleet.open_leases == 0
    assert world.fleet.waiting == 0
    assert world.services.requests.views() == ()


@EVERY_PHASE
async def test_leaving_is_recorded_once_and_is_no_failure(world: World, phase: str) -> None:
    call = await begun(world, phase, stream=True)
    call.gone.set()
    await call.finished()
    (record,) = world.records
    assert (record.status, record.error) == (499, None)
    assert record.generated_tokens == (1 if phase == "streaming" else None)
    assert world.fleet.failures == []


async def test_a_request_that_left_while_it_waited_is_never_sent(world: World) -> None:
    call = await begun(world, "waiting")
    call.gone.set()
    await call.finished()
    world.fleet.gate.set()
    await asyncio.sleep(0.02)
    assert world.engine.calls == []


async def test_one_that_leaves_does_not_disturb_another(world: World) -> None:
    stays = await begun(world, "streaming", stream=True)
    world.fleet.gate.clear()
    leaves = world.start_chat(stream=True)
    await eventually(lambda: world.fleet.waiting == 1)
    leaves.gone.set()
    await leaves.finished()
    assert not stays.ended
    assert not world.engine.calls[0].closed.is_set()
    stays.gone.set()
    await stays.finished()


async def test_an_engine_that_does_not_read_cannot_hold_a_cancel_up(world: World) -> None:
    world.limit(write_timeout_s=60.0)
    world.engine.default = hang

    async def accept_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        reader._transport.pause_reading()  # type: ignore[attr-defined]

    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accept_only, "127.0.0.1", 0, limit=1)
    world.engine.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    call = world.start_chat(padding="x" * 30_000_000)
    await eventually(lambda: accepted)
    await asyncio.sleep(0.05)
    call.gone.set()
    await call.finished(LATENCY_S)
    assert world.fleet.open_leases == 0
    accepted[0].close()
    server.close()


@EVERY_PHASE
async def test_a_cancelled_stream_ends_like_a_stream(world: World, phase: str) -> None:
    call = await begun(world, phase, stream=True)
    answer = await world.ask(f"/v1/requests/{request_id(world)}/cancel")
    assert answer.json()["cancelled"] is True
    await call.finished()
    last, close = call.events()[-2:]
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert close["choices"] == []
    assert close["cancelled"] is True
    assert call.payloads()[-1] == "[DONE]"
    assert call.ended
    assert world.fleet.open_leases == 0


async def test_a_cancelled_stream_keeps_its_identity(world: World) -> None:
    call = await begun(world, "streaming", stream=True)
    world.services.requests.cancel(request_id(world))
    await call.finished()
    assert {event["id"] for event in call.events()} == {CHUNK["id"]}
    assert (world.records[0].status, world.records[0].error) == (499, "cancelled")


@EVERY_PHASE
async def test_a_cancelled_request_without_stream_is_a_conflict(world: World, phase: str) -> None:
    call = await begun(world, phase)
    world.services.requests.cancel(request_id(world))
    await call.finished()
    assert (call.status, call.error()["code"]) == (409, "cancelled")
    assert (world.records[0].status, world.records[0].error) == (499, "cancelled")


async def test_only_running_requests_can_be_cancelled(world: World) -> None:
    call = await world.ask("/v1/requests/req-nobody/cancel")
    assert (call.status, call.error()["code"]) == (404, "request_not_found")


async def test_a_request_is_cancelled_by_its_own_key_only(world: World) -> None:
    keys = tuple(AccessKey(name, digest) for name, digest in SECRETS.items())
    world.declare(model("smol"), access=keys)
    world.engine.default = stream_for_ever
    body = {"model": "smol", "messages": [], "stream": True}
    call = world.call("/v1/chat/completions", body, headers={"x-api-key": "secret"})
    await eventually(lambda: world.services.requests.views())
    path = f"/v1/requests/{request_id(world)}/cancel"
    foreign = await world.ask(path, headers={"x-api-key": "other"})
    assert foreign.status == 404
    own = await world.ask(path, headers={"x-api-key": "secret"})
    assert own.status == 200
    await call.finished()


@pytest.mark.parametrize("code", ["model_unloaded", "instance_replaced", "shutting_down"])
@BOTH_FORMS
async def test_a_revoked_lease_ends_a_request_before_its_answer(
    world: World, code: RevokeCode, streamed: bool
) -> None:
    call = await begun(world, "sent", stream=streamed)
    world.fleet.leases[0].revoked.set_result(code)
    await call.finished()
    assert (call.status, call.error()["code"]) == (503, code)
    await asyncio.wait_for(world.engine.calls[0].closed.wait(), LATENCY_S)
    assert world.fleet.open_leases == 0
    assert world.fleet.failures == []


@pytest.mark.parametrize("code", ["model_unloaded", "instance_replaced", "shutting_down"])
async def test_a_revoked_lease_ends_a_stream_with_an_error_event(world: World, code: RevokeCode) -> None:
    call = await begun(world, "streaming", stream=True)
    world.fleet.leases[0].revoked.set_result(code)
    await call.finished()
    assert call.events()[-1]["error"]["code"] == code
    assert call.payloads()[-1] == "[DONE]"
    assert world.fleet.open_leases == 0


async def test_a_connection_that_ends_with_its_lease_is_no_crash(world: World) -> None:
    async def play(call: Call) -> None:
        world.fleet.leases[0].revoked.set_result("model_unloaded")
        call.drop()

    world.engine.default = play
    call = await world.chat()
    assert (call.status, call.error()["code"]) == (503, "model_unloaded")
    assert world.fleet.failures == []


async def test_the_end_of_the_server_is_not_swallowed(world: World) -> None:
    call = await begun(world, "streaming", stream=True)
    assert call.task is not None
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert world.fleet.open_leases == 0
    assert world.services.requests.views() == ()


async def test_active_requests_are_shown(world: World) -> None:
    call = await begun(world, "streaming", model="gpt", stream=True)
    (view,) = world.services.requests.views()
    assert (view.model, view.replica, view.route, view.tokens) == ("smol", 0, "/v1/chat/completions", 1)
    call.gone.set()
    await call.finished()
