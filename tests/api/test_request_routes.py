"""`/requests`: who may read them, what is running, what the log has, and ending one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.telemetry.request_log import RequestLog
from tests.api.world import World, key, make_world
from tests.telemetry.samples import NOON, life, record

ROUTES = ["/requests", "/requests/req-1"]


def world_with(log: RequestLog) -> World:
    world = make_world()
    world.services = replace(world.services, request_log=log)
    return world


def running(world: World, request_id: str, **fields: Any) -> ActiveRequest:
    """A request that is being served."""
    active = ActiveRequest(request_id, NOON, "/v1/chat/completions", 10.0, **fields)
    requests = world.services.requests
    assert isinstance(requests, InFlight)
    requests.add(active)
    return active


async def get(world: World, path: str, **query: Any) -> httpx.Response:
    async with world.client() as client:
        return await client.get(f"/api/v1{path}", params=query or None)


@pytest.mark.parametrize("path", ROUTES)
async def test_only_operators_read_them(path: str) -> None:
    world = make_world(key("viewer", "v", "view"), key("boss", "b", "operate"))
    async with world.client("v") as client:
        refused = await client.get(f"/api/v1{path}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "role_not_allowed")
    async with world.client("b") as client:
        assert (await client.get("/api/v1/requests")).status_code == 200
    async with world.client(None) as client:
        assert (await client.get(f"/api/v1{path}")).status_code == 401


async def test_the_log_is_listed_without_texts_and_one_has_them(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = RequestLog(one.store)
        log.adopt("full")
        for number in range(1, 4):
            log.keep(record(number, texts=f"text {number}", model="chat" if number < 3 else "org/other:q4"))
    with life(tmp_path) as later:
        log = RequestLog(later.store)
        log.mode = "full"
        world = world_with(log)
        listed = (await get(world, "/requests")).json()
        of_alias = (await get(world, "/requests", model="chat-alias", limit=1)).json()
        single = (await get(world, "/requests/req-2")).json()
    assert listed["request_log"] == "full"
    assert [one["id"] for one in listed["requests"]] == ["req-1", "req-2", "req-3"]
    assert {one["texts"] for one in listed["requests"]} == {None}
    assert [one["id"] for one in of_alias["requests"]] == ["req-2"]
    assert single == {
        "seq": 2,
        "id": "req-2",
        "at": "2026-01-02T12:00:00.123Z",
        "route": "/v1/chat/completions",
        "model": "chat",
        "replica": 0,
        "key": "laptop",
        "status": 200,
        "queue_s": 0.25,
        "first_token_s": 0.5,
        "total_s": 2.0,
        "prompt_tokens": 9,
        "cached_tokens": 8,
        "generated_tokens": 4,
        "drafted": None,
        "accepted": None,
        "stop_reason": "stop",
        "error": None,
        "instance": "chat.0@1",
        "stream": True,
        "retried": False,
        "texts": {"asked": {"prompt": "text 2"}, "answered": {"content": "text 2"}, "is_cut": False},
    }


async def test_running_requests_stand_beside_the_log() -> None:
    world = make_world()
    running(world, "req-a", model="chat", key="laptop", phase="streaming")
    running(world, "req-b", model="org/other:q4")
    listed = (await get(world, "/requests", model="chat")).json()
    assert listed["requests"] == []
    (one,) = listed["running"]
    assert (one["id"], one["phase"], one["key"], one["at"]) == (
        "req-a",
        "streaming",
        "laptop",
        "2026-01-02T12:00:00.123Z",
    )
    assert (await get(world, "/requests/req-b")).json()["model"] == "org/other:q4"


async def test_an_operator_may_end_any_request() -> None:
    world = make_world()
    active = running(world, "req-a", model="chat", key="somebody")
    async with world.client() as client:
        answer = await client.post("/api/v1/requests/req-a/cancel")
        unknown = await client.post("/api/v1/requests/req-x/cancel")
    assert (answer.status_code, answer.json()) == (200, {"id": "req-a", "cancelled": True})
    assert active.scope.cause == "cancelled"
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "request_not_found")


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"before": "x"}, {"status": 200}])
async def test_a_filter_that_makes_no_sense_is_refused(query: dict[str, Any]) -> None:
    answer = await get(make_world(), "/requests", **query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_body")


async def test_an_unknown_request_is_not_found() -> None:
    answer = await get(make_world(), "/requests/req-x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "request_not_found")
