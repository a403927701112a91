"""What only shows on a real socket: connections that stay, break, or carry too much."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.proxy.http_server import served
from tests.proxy.scripted_engine import Call, piece
from tests.proxy.world import HELLO, World
from tests.support.waiting import eventually

LATENCY_S = 10.0


@pytest.fixture
async def url(world: World) -> AsyncIterator[str]:
    async with served(world.app) as address:
        yield address


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


def request(body: bytes, length: int | None = None) -> bytes:
    """A chat request as bytes; `length` is what it says its length is."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(body)}"
    return head.encode() + b"\r\nContent-Type: application/json\r\n\r\n" + body


async def stream_for_ever(call: Call) -> None:
    await call.start_stream()
    await call.events(piece("a"))
    await call.closed.wait()


# A half-close counts as leaving: until something is written `close` is the same FIN; a cancel cannot wait.
@pytest.mark.parametrize("how", ["close", "reset", "half-close"])
async def test_a_broken_connection_closes_the_one_behind_it(world: World, url: str, how: str) -> None:
    world.engine.default = stream_for_ever
    reader, writer = await connect(url)
    writer.write(request(json.dumps({**HELLO, "stream": True}).encode()))
    await reader.readuntil(b'"content"')
    left = time.monotonic()
    if how == "reset":
        writer.transport.abort()
    elif how == "half-close":
        writer.write_eof()
    else:
        writer.close()
    await asyncio.wait_for(world.engine.calls[0].closed.wait(), 5)
    assert time.monotonic() - left < LATENCY_S
    writer.close()


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_leaving_is_seen_behind_requests_that_wait(world: World, url: str, streamed: bool) -> None:
    world.engine.default = stream_for_ever
    _, writer = await connect(url)
    writer.write(request(json.dumps({**HELLO, "stream": streamed}).encode()))
    await eventually(lambda: world.engine.calls)
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
    await writer.drain()
    await asyncio.sleep(0.05)
    left = time.monotonic()
    writer.close()
    await asyncio.wait_for(world.engine.calls[0].closed.wait(), 5)
    assert time.monotonic() - left < LATENCY_S


async def test_a_body_that_comes_with_an_offer_to_upgrade_is_read(url: str) -> None:
    upgrade = {"connection": "upgrade, http2-settings", "upgrade": "h2c", "http2-settings": "AAMAAABk"}
    async with httpx.AsyncClient(base_url=url) as client:
        for _ in range(2):
            answer = await client.post("/v1/chat/completions", json=HELLO, headers=upgrade)
            assert answer.status_code == 200


async def test_a_target_with_a_foreign_host_is_judged_by_it(url: str) -> None:
    reader, writer = await connect(url)
    writer.write(b"GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    writer.close()


async def test_health_is_told_under_any_name(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        answer = await client.get("/health", headers={"host": "evil.example"})
    assert answer.status_code == 200


async def test_one_connection_serves_many_requests(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        for streamed in (False, True, False, True):
            answer = await client.post("/v1/chat/completions", json={**HELLO, "stream": streamed})
            assert answer.status_code == 200
        assert (await client.get("/health")).json() == {"status": "ok"}


async def test_an_error_leaves_the_connection_usable(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        assert (await client.post("/v1/chat/completions", content=b"{")).status_code == 400
        assert (await client.post("/v1/chat/completions", json=HELLO)).status_code == 200


async def test_a_body_that_says_it_is_too_large_is_answered_before_it_is_sent(url: str) -> None:
    reader, writer = await connect(url)
    writer.write(request(b"{", length=2**40))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head.lower()
    writer.close()


async def test_streams_do_not_hold_each_other_up(world: World, url: str) -> None:
    world.engine.scripts = [stream_for_ever]
    async with httpx.AsyncClient(base_url=url) as client:
        body = {**HELLO, "stream": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as stalled:
            await anext(stalled.aiter_lines())
            answers = [client.post("/v1/chat/completions", json=HELLO) for _ in range(5)]
            assert [answer.status_code for answer in await asyncio.gather(*answers)] == [200] * 5


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_head_is_a_get_without_a_body(url: str, method: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        answer = await client.request(method, "/v1/models")
    assert answer.status_code == 200
    assert bool(answer.content) is (method == "GET")
