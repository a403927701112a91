"""The routes of 13 §8: what they answer, what they pass on, what they refuse."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from framework.api import shapes
from framework.api.inputs import MAX_BODY_BYTES
from framework.api.routes import api_routes
from framework.telemetry.events import EVENTS_PER_MODEL
from tests.api import samples
from tests.api.world import PROBLEM, World, make_world

ERROR_KEYS = {"message", "type", "code", "param", "request_id"}
STATUS_KEYS = {"version", "since_at", "manifest", "devices_sampled_at", "pools", "models"}


async def get(path: str, world: World | None = None, **query: Any) -> httpx.Response:
    async with (world or make_world()).client() as client:
        return await client.get(f"/api/v1{path}", params=query or None)


async def post(path: str, world: World | None = None, **arguments: Any) -> httpx.Response:
    async with (world or make_world()).client() as client:
        return await client.post(f"/api/v1{path}", **arguments)


def assert_error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The one envelope of every error."""
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == ERROR_KEYS
    assert error["code"] == code
    return error


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        pytest.param("/status", STATUS_KEYS, id="status"),
        pytest.param("/plan", {"manifest", "inventory", "instances", "reasons"}, id="plan"),
        pytest.param("/events", {"events", "storage_fault"}, id="events"),
        pytest.param("/manifest", {"ok", "manifest", "problems", "text", "files"}, id="manifest"),
        pytest.param("/engines", {"engines"}, id="engines"),
        pytest.param("/devices", {"sampled_at", "devices", "reasons"}, id="devices"),
        pytest.param("/doctor", {"checks"}, id="doctor"),
    ],
)
async def test_question_is_answered_with_its_shape(path: str, keys: set[str]) -> None:
    response = await get(path)
    assert response.status_code == 200
    assert response.json().keys() == keys


async def test_answers_are_private() -> None:
    response = await get("/status")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == "application/json"


async def test_status_shows_devices_without_asking_an_engine() -> None:
    document = (await get("/status")).json()
    assert [device["name"] for device in document["pools"][0]["devices"]] == ["CPU"]


async def test_plan_shows_refusals_in_their_place() -> None:
    instances = (await get("/plan")).json()["instances"]
    assert [instance["granted"] is None for instance in instances] == [False, True]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/models/chat", id="name"),
        pytest.param("/models/chat-alias", id="alias"),
    ],
)
async def test_model_is_found_by_name_and_alias(path: str) -> None:
    response = await get(path)
    assert response.json() == shapes.model_json(samples.model("chat", samples.instance()))


@pytest.mark.parametrize("name", [quote("org/other:q4", safe=""), "org/other:q4", "org%2Fother:q4"])
async def test_name_with_slash_and_colon_is_found(name: str) -> None:
    assert (await get(f"/models/{name}")).json()["name"] == "org/other:q4"


async def test_name_that_ends_like_a_command_is_found_when_encoded() -> None:
    world = make_world()
    world.fleet.models["a/logs"] = samples.model("a/logs")
    assert (await get("/models/a%2Flogs", world)).json()["name"] == "a/logs"
    assert_error(await get("/models/a/logs", world), 404, "model_not_found")


async def test_unknown_model_is_refused_with_the_nearest_names() -> None:
    error = assert_error(await get("/models/chatt"), 404, "model_not_found")
    assert "chat" in error["message"]
    assert error["param"] == "model"


async def test_hostile_name_is_not_repeated_as_it_is() -> None:
    error = assert_error(await get("/models/%1b%5b2J" + "x" * 5000), 404, "model_not_found")
    assert "\x1b" not in error["message"]
    assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("path", "body", "command"),
    [
        pytest.param("/models/chat/load", None, ("load", "chat", "token"), id="load"),
        pytest.param("/models/chat/reload", {}, ("reload", "chat", "token"), id="reload"),
        pytest.param("/models/chat/replan", {}, ("replan", "chat", "token"), id="replan"),
        pytest.param("/models/chat/unload", None, ("unload", "chat", "drain", "token"), id="unload"),
        pytest.param(
            "/models/chat/unload", {"mode": "kill"}, ("unload", "chat", "kill", "token"), id="unload-kill"
        ),
        pytest.param("/models/chat-alias/load", None, ("load", "chat", "token"), id="by-alias"),
        pytest.param(
            "/models/org%2Fother%3Aq4/load", None, ("load", "org/other:q4", "token"), id="encoded-name"
        ),
        pytest.param("/models/org/other:q4/load", None, ("load", "org/other:q4", "token"), id="plain-slash"),
    ],
)
async def test_command_is_given_and_accepted(path: str, body: Any, command: tuple[str, ...]) -> None:
    world = make_world()
    response = await post(path, world, json=body) if body is not None else await post(path, world)
    assert response.status_code == 202
    assert response.json() == {"accepted": True, "event_id": 1}
    assert world.fleet.commands == [command]


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        pytest.param("/models/chat/unload", b'{"mode": "gently"}', "invalid_body", id="unknown-mode"),
        pytest.param("/models/chat/unload", b'{"mode": 1}', "invalid_body", id="mode-of-wrong-type"),
        pytest.param("/models/chat/unload", b'{"modus": "now"}', "invalid_body", id="unknown-field"),
        pytest.param("/models/chat/load", b'{"mode": "now"}', "invalid_body", id="field-of-another-command"),
        pytest.param("/models/chat/unload", b"[]", "invalid_body", id="no-object"),
        pytest.param("/models/chat/unload", b"{", "invalid_body", id="no-json"),
        pytest.param("/models/chat/unload", b"\xff\xfe", "invalid_body", id="no-text"),
        pytest.param("/manifest/check", b'{"text": 5}', "invalid_body", id="text-of-wrong-type"),
        pytest.param("/manifest/diff", b'{"content": "x"}', "invalid_body", id="misspelt-text"),
    ],
)
async def test_bad_body_is_refused_and_nothing_happens(path: str, content: bytes, code: str) -> None:
    world = make_world()
    assert_error(await post(path, world, content=content), 400, code)
    assert world.fleet.commands == []


async def test_body_that_is_too_large_is_refused() -> None:
    content = b'{"text": "' + b"a" * MAX_BODY_BYTES + b'"}'
    assert_error(await post("/manifest/check", content=content), 413, "body_too_large")


async def test_command_for_an_unknown_model_is_refused() -> None:
    assert_error(await post("/models/none/load"), 404, "model_not_found")


async def test_model_that_is_removed_meanwhile_is_unknown() -> None:
    world = make_world()

    def gone(model_id: str, *, by: str) -> Any:
        raise KeyError(model_id)

    world.fleet.load = gone  # type: ignore[method-assign]
    assert_error(await post("/models/chat/load", world), 404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        pytest.param("POST", "/status", "GET", id="status"),
        pytest.param("DELETE", "/models/chat", "GET, POST", id="models"),
        pytest.param("POST", "/models/chat", "GET", id="model-without-command"),
        pytest.param("POST", "/models/chat/logs", "GET", id="logs"),
        pytest.param("GET", "/models/chat/load", "POST", id="command"),
        pytest.param("GET", "/manifest/diff", "POST", id="diff"),
    ],
)
async def test_wrong_method_is_refused_with_the_right_one(method: str, path: str, allow: str) -> None:
    async with make_world().client() as client:
        response = await client.request(method, f"/api/v1{path}")
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize(
    ("path", "param", "said"),
    [
        pytest.param("/events?limitt=3", "limitt", "allowed is model, kind, since, limit", id="events"),
        pytest.param("/events/stream?follow=1", "follow", "allowed is model, kind, since", id="stream"),
        pytest.param("/models/chat/logs?line=3", "line", "allowed is lines, replica, follow", id="logs"),
        pytest.param("/models/chat?lines=3", "lines", "there is none here", id="model"),
        pytest.param("/status?x", "x", "there is none here", id="status"),
        pytest.param("/events?limit=3&limit=4", "limit", "given twice", id="repeated"),
        pytest.param("/events?kind=&kind=ready", "kind", "given twice", id="repeated-after-an-empty-one"),
    ],
)
async def test_query_parameter_that_nothing_reads_is_refused(path: str, param: str, said: str) -> None:
    error = assert_error(await get(path), 400, "invalid_body")
    assert error["param"] == param
    assert said in error["message"]


async def test_command_with_a_query_is_refused_and_nothing_happens() -> None:
    world = make_world()
    assert_error(await post("/models/chat/unload?mode=kill", world), 400, "invalid_body")
    assert world.fleet.commands == []


async def test_unknown_field_is_named_with_those_that_there_are() -> None:
    error = assert_error(await post("/models/chat/unload", json={"modus": "now"}), 400, "invalid_body")
    assert error["message"] == "'modus' is no field of this route; allowed is mode."


@pytest.mark.parametrize("path", ["/models/chat/logs?replica=7", "/models/chat/logs?replica=7&follow=1"])
async def test_replica_that_there_is_not_is_refused_with_those_that_there_are(path: str) -> None:
    error = assert_error(await get(path), 404, "replica_not_found")
    assert error["message"] == '"chat" has no replica 7; it has 0.'


@pytest.mark.parametrize("path", ["/models/a%0Ab", "/models/a%0Ab/logs", "/models/%0A", "/no%0Athing"])
async def test_line_end_in_a_path_is_answered_with_the_envelope(path: str) -> None:
    response = await get(path)
    assert_error(response, 404, response.json()["error"]["code"])


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/status/", "/models", "/manifest/nothing"])
async def test_unknown_path_answers_with_the_envelope(path: str) -> None:
    assert_error(await get(path), 404, "route_not_found")


async def test_fault_of_ours_tells_nothing_but_its_id(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> Any:
        raise RuntimeError("/secret/path")

    world = make_world()
    world.services = replace(world.services, doctor=broken)
    error = assert_error(await get("/doctor", world), 500, "internal_error")
    assert "/secret/path" not in str(error)
    assert error["request_id"] in error["message"]
    assert error["request_id"] in caplog.text


async def test_manifest_answers_the_text_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text("# hello\n", encoding="utf-8")
    document = (await get("/manifest", make_world(path=path))).json()
    assert document["text"] == "# hello\n"
    assert document["manifest"]["path"] == str(path)


async def test_manifest_that_cannot_be_read_has_no_text(tmp_path: Path) -> None:
    assert (await get("/manifest", make_world(path=tmp_path / "gone.toml"))).json()["text"] == ""


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="endless-device"),
        pytest.param(make_pipe, id="pipe-without-writer"),
        pytest.param(lambda path: path.write_bytes(b"#" * (2**20 + 1)), id="too-large"),
    ],
)
async def test_manifest_that_is_no_manifest_is_not_read(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    path = tmp_path / "serve.toml"
    make(path)
    async with asyncio.timeout(10):
        assert (await get("/manifest", make_world(path=path))).json()["text"] == ""


async def test_check_looks_at_the_text_that_is_sent() -> None:
    world = make_world()
    document = (await post("/manifest/check", world, json={"text": "slot = 4"})).json()
    assert document["ok"] is False
    assert document["problems"] == [shapes.problem_json(PROBLEM)]
    assert world.texts == ["slot = 4"]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"text": null}'])
async def test_without_a_text_the_file_is_looked_at(body: bytes) -> None:
    world = make_world()
    assert (await post("/manifest/check", world, content=body)).json()["ok"] is True
    assert world.texts == [None]


async def test_diff_shows_actions_with_their_causes() -> None:
    document = (await post("/manifest/diff", json={})).json()
    assert document["actions"][0]["changes"][0]["why"] == "the cache is allocated at start"
    assert document["notices"] == ["listen waits"]
    assert document["problems"] == []


async def test_diff_of_a_broken_text_shows_its_problems_and_no_actions() -> None:
    document = (await post("/manifest/diff", json={"text": "slot = 4"})).json()
    assert document["actions"] == []
    assert document["problems"] == [shapes.problem_json(PROBLEM)]


def recorded(world: World) -> None:
    """Four events, of two models and none."""
    events = world.services.events
    events.record("manifest_loaded", "one")
    events.record("ready", "two", model="chat", replica=0)
    events.record("exited", "three", model="chat", replica=0)
    events.record("ready", "four", model="org/other:q4", replica=0)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        pytest.param({}, [1, 2, 3, 4], id="all-oldest-first"),
        pytest.param({"limit": 2}, [3, 4], id="newest"),
        pytest.param({"since": 2}, [3, 4], id="since"),
        pytest.param({"before": 4, "limit": 2}, [2, 3], id="before"),
        pytest.param({"model": "chat"}, [2, 3], id="model"),
        pytest.param({"model": "chat-alias"}, [2, 3], id="alias"),
        pytest.param({"kind": "ready"}, [2, 4], id="kind"),
        pytest.param({"kind": "ready", "model": "chat"}, [2], id="both"),
        pytest.param({"model": "", "kind": ""}, [1, 2, 3, 4], id="empty-filters"),
    ],
)
async def test_events_pass_the_filter(query: dict[str, Any], ids: list[int]) -> None:
    world = make_world()
    recorded(world)
    found = (await get("/events", world, **query)).json()["events"]
    assert [event["id"] for event in found] == ids


@pytest.mark.parametrize(
    ("query", "param"),
    [
        pytest.param({"limit": "0"}, "limit", id="no-limit"),
        pytest.param({"limit": "1001"}, "limit", id="limit-too-high"),
        pytest.param({"limit": "many"}, "limit", id="limit-in-words"),
        pytest.param({"limit": "1" * 5000}, "limit", id="endless-number"),
        pytest.param({"since": "-1"}, "since", id="negative-id"),
        pytest.param({"since": "٣"}, "since", id="digits-of-another-script"),
        pytest.param({"kind": "reday"}, "kind", id="unknown-kind"),
    ],
)
async def test_bad_filter_is_refused(query: dict[str, str], param: str) -> None:
    error = assert_error(await get("/events", **query), 400, "invalid_body")
    assert error["param"] == param


async def test_events_of_an_unknown_model_are_refused() -> None:
    assert_error(await get("/events", model="none"), 404, "model_not_found")


async def test_events_of_a_removed_model_are_still_there() -> None:
    world = make_world()
    recorded(world)
    del world.fleet.models["chat"]
    found = (await get("/events", world, model="chat")).json()["events"]
    assert [event["id"] for event in found] == [2, 3]


def test_an_answer_may_hold_all_that_is_kept_of_one_model() -> None:
    from framework.api.event_routes import MAX_LIMIT

    assert MAX_LIMIT == EVENTS_PER_MODEL


def test_every_route_is_below_the_prefix_or_has_a_name_that_others_know() -> None:
    paths = {route.path for route in api_routes(make_world().services)}  # type: ignore[attr-defined]
    assert {path for path in paths if not path.startswith("/api/v1")} == {"/metrics", "/openapi.json"}
