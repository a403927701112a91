"""Calls to instances: what goes over the wire, and which failures there are (08 §3, §5.3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from framework.proxy.limits import ProxyLimits
from framework.proxy.upstream import Upstream, UpstreamLost, request_bytes
from framework.runtime.lease import Lease
from tests.proxy.scripted_engine import ScriptedEngine, hang
from tests.support.waiting import eventually, unused_port


@dataclass
class Where:
    """What a call needs of a lease."""

    base_url: str
    headers: dict[str, str] = field(default_factory=dict)


def lease(url: str, **headers: str) -> Lease:
    return cast("Lease", Where(url, headers))


@pytest.fixture
async def engine() -> Any:
    engine = ScriptedEngine()
    await engine.start()
    yield engine
    await engine.stop()


def test_a_request_as_bytes() -> None:
    sent = request_bytes("127.0.0.1:9", "/v1/chat/completions?a=b", {"Authorization": "Bearer k"}, b"{}")
    head, _, body = sent.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions?a=b HTTP/1.1"
    assert {b"Host: 127.0.0.1:9", b"Authorization: Bearer k", b"Content-Length: 2"} <= set(lines)
    assert body == b"{}"


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a\n", "/\x00", "/\x7f"])
def test_a_path_cannot_bring_a_header(path: str) -> None:
    with pytest.raises(ValueError, match="control characters"):
        request_bytes("127.0.0.1:9", path, {}, b"")


async def test_an_answer_with_its_headers(engine: ScriptedEngine) -> None:
    engine.default = lambda call: call.json(418, {"a": 1})
    answer = await Upstream(ProxyLimits()).post(lease(engine.url), "/x", b"{}")
    assert (answer.status, answer.content_type, answer.is_event_stream) == (418, "application/json", False)
    assert await answer.read_all(100) == b'{"a": 1}'
    answer.close()


async def test_each_call_has_a_connection_of_its_own(engine: ScriptedEngine) -> None:
    upstream = Upstream(ProxyLimits())
    for _ in range(2):
        answer = await upstream.post(lease(engine.url), "/x", b"{}")
        answer.close()
    await eventually(lambda: all(call.closed.is_set() for call in engine.calls))
    assert len({id(call.writer) for call in engine.calls}) == 2


async def test_nobody_listens() -> None:
    with pytest.raises(UpstreamLost) as caught:
        await Upstream(ProxyLimits()).post(lease(f"http://127.0.0.1:{unused_port()}"), "/x", b"")
    assert caught.value.kind == "connect"


async def test_closing_ends_the_calls_that_run(engine: ScriptedEngine) -> None:
    engine.default = hang
    upstream = Upstream(ProxyLimits())
    running = asyncio.create_task(upstream.post(lease(engine.url), "/x", b"{}"))
    await eventually(lambda: engine.calls)
    upstream.close()
    with pytest.raises(UpstreamLost):
        await asyncio.wait_for(running, 5)
    await asyncio.wait_for(engine.calls[0].closed.wait(), 5)
