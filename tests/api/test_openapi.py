"""The description of the routes: whole, and made of what the routes declare."""

from __future__ import annotations

import json
import re
from typing import Any

from framework.api.openapi.bodies import BODIES, FORMS
from framework.api.openapi.document import document
from framework.api.openapi.parameters import QUERY
from framework.api.routes import api_routes
from framework.proxy.endpoints import ENDPOINTS, NAMED_ENDPOINTS, SUFFIXES
from tests.api.world import make_world

METHODS = {"get", "post"}


async def described() -> dict[str, Any]:
    async with make_world().client() as client:
        answer = await client.get("/openapi.json")
        assert (await client.get("/api/v1/openapi.json")).json() == answer.json()
    found: dict[str, Any] = answer.json()
    return found


async def test_every_route_is_in_it() -> None:
    found = set((await described())["paths"])
    routes = {route.path for route in api_routes(make_world().services)}  # type: ignore[attr-defined]
    plain = {path for path in routes if ":" not in path} - {"/api/v1"}
    public = {*ENDPOINTS, *NAMED_ENDPOINTS, *(f"/m/{{name}}{suffix}" for suffix in SUFFIXES)}
    assert plain | public <= found


async def test_every_operation_says_what_it_does_and_has_a_name_of_its_own() -> None:
    paths = (await described())["paths"].values()
    operations = [one for path in paths for method, one in path.items() if method in METHODS]
    assert all(one["summary"] and one["responses"]["default"] for one in operations)
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names))


async def test_whatever_it_refers_to_is_there() -> None:
    found = await described()
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found)))
    assert named == set(found["components"]["schemas"]) - {"Error"} | {"Error"}


async def test_answers_of_the_api_have_a_shape() -> None:
    shapeless = [
        path
        for path, methods in (await described())["paths"].items()
        for one in methods.values()
        if path.startswith("/api/v1") and "openapi" not in path
        for status, answer in one["responses"].items()
        if status != "default" and answer["content"].get("application/json", {}).get("schema") == {}
    ]
    assert shapeless == []


def test_every_parameter_that_a_route_reads_has_a_schema_and_no_other() -> None:
    routes = api_routes(make_world().services)
    read = {name for route in routes for name in route.endpoint.query}  # type: ignore[attr-defined]
    assert read == set(QUERY)


async def test_only_health_needs_no_key() -> None:
    paths = (await described())["paths"]
    assert [
        path for path, methods in paths.items() if any(one.get("security") == [] for one in methods.values())
    ] == ["/health", "/v1/health"]


async def test_it_is_for_callers_that_may_look() -> None:
    async with make_world().client(credential=None) as client:
        assert (await client.get("/openapi.json")).status_code == 401


def test_a_description_of_nothing_still_has_the_public_routes() -> None:
    assert "/v1/chat/completions" in document({}, "1")["paths"]


def test_what_is_told_of_bodies_is_of_routes_that_exist() -> None:
    routes = {endpoint.route for endpoint in ENDPOINTS.values() if endpoint.method == "POST"}
    assert {*BODIES, *FORMS} == routes
