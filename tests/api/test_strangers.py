"""What callers get that may be anybody's page or program: no header for others, no time without end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from framework.api import inputs
from tests.api.world import key, make_world


async def test_pages_of_other_origins_are_told_nothing_here_whatever_the_endpoint_allows() -> None:
    world = make_world(key("laptop", "s3cret", "operate"))
    manifest = world.services.current.manifest
    page = "https://chat.example"
    world.services.current.manifest = replace(manifest, server=replace(manifest.server, cors=(page, "*")))
    asks = {"origin": page, "access-control-request-method": "POST"}
    async with world.client(credential="s3cret") as client:
        for method, path in (("OPTIONS", "/api/v1/status"), ("GET", "/api/v1/status"), ("GET", "/metrics")):
            answer = await client.request(method, path, headers=asks)
            assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_body_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    monkeypatch.setattr(inputs, "BODY_TIMEOUT_S", 0.2)
    async with make_world().client() as client:
        answer = await client.post("/api/v1/manifest/check", content=trickle())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_body")
    assert "did not arrive" in answer.json()["error"]["message"]
