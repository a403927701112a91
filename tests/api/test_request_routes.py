"""`/requests`: who may read them, what is running, what the log has, and ending one."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.telemetry.events import utc_now
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
        "prompt_s": None,
        "generation_s": None,
        "prompt_tokens_per_s": None,
        "generation_tokens_per_s": None,
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
    told = world.services.events.recent(kind="command")
    expected = {"id": "req-a", "cancelled": True, "event_id": told[0].id}
    assert (answer.status_code, answer.json()) == (200, expected)
    assert (told[0].model, told[0].data) == ("chat", {"command": "cancel", "request": "req-a", "by": "token"})
    assert active.scope.cause == "cancelled"
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "request_not_found")


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 1001},
        {"before": "x"},
        {"status": 600},
        {"last_s": 0},
        {"format": "xml"},
        {"until": 1},
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(query: dict[str, Any]) -> None:
    answer = await get(make_world(), "/requests", **query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_body")


async def test_an_unknown_request_is_not_found() -> None:
    answer = await get(make_world(), "/requests/req-x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "request_not_found")


async def test_filters_are_those_of_the_log(tmp_path: Path) -> None:
    now = utc_now()
    with life(tmp_path) as one:
        log = RequestLog(one.store)
        log.adopt("metadata")
        log.keep(record(1, at=now - timedelta(hours=3)))
        log.keep(record(2, at=now, status=404))
        log.keep(record(3, at=now, status=502))
    with life(tmp_path) as later:
        world = world_with(RequestLog(later.store))
        for query, expected in (
            ({"status": "failed"}, ["req-2", "req-3"]),
            ({"status": "4xx"}, ["req-2"]),
            ({"status": 502}, ["req-3"]),
            ({"last_s": 3600}, ["req-2", "req-3"]),
            ({"status": "answered", "last_s": 60}, []),
        ):
            found = (await get(world, "/requests", **query)).json()["requests"]
            assert [one["id"] for one in found] == expected


async def test_a_spreadsheet_gets_names_then_rows_and_no_formula(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        log = RequestLog(one.store)
        log.adopt("full")
        log.keep(
            record(
                1, key='=HYPERLINK("http://x")', model='a,"b"', texts="secret", generation_tokens_per_s=41.26
            )
        )
    with life(tmp_path) as later:
        answer = await get(world_with(RequestLog(later.store)), "/requests", format="csv")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    assert (row["key"], row["model"]) == ('\'=HYPERLINK("http://x")', 'a,"b"')
    assert (row["generation_tokens_per_s"], row["drafted"], row["retried"]) == ("41.26", "", "false")
    assert "secret" not in answer.text


async def test_the_last_hour_of_a_model_is_read_by_anybody_who_may_look() -> None:
    world = make_world(key("viewer", "v", "view"))
    world.services.history.request_ended(record(1, key="somebody", generation_tokens_per_s=41.0))
    async with world.client("v") as client:
        answer = await client.get("/api/v1/models/chat-alias/history")
        unknown = await client.get("/api/v1/models/nobody/history")
        wrong = await client.get("/api/v1/models/chat/history?since=1")
        posted = await client.post("/api/v1/models/chat/history")
    found = answer.json()
    assert (found["model"], found["step_s"]) == ("chat", 60)
    assert found["steps"][-1]["requests"] == {"answered": 1, "left": 0, "refused": 0, "failed": 0}
    assert found["steps"][-1]["tokens_per_s"] == {"prompt": None, "generation": 41.0}
    assert "somebody" not in answer.text
    assert [one.status_code for one in (unknown, wrong, posted)] == [404, 400, 403]


async def test_the_last_hour_of_devices_is_there_too() -> None:
    world = make_world()
    world.services.history.looked((), world.fleet.pools())
    found = (await get(world, "/history")).json()
    assert found["step_s"] == 60
    assert [one["name"] for one in found["devices"]] == [
        d.name for p in world.fleet.pools() for d in p.devices
    ]
    assert found["devices"][0]["steps"][-1]["used_bytes"] > 0
