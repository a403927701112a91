"""What holds for every request: order of checks, keys, CORS, bodies, errors (12 §2, 15 §4-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver import gate, transport
from framework.nativeserver.bridge import FellAsleep
from framework.nativeserver.cors import cors_headers
from framework.nativeserver.json_bounds import is_deeper
from framework.nativeserver.keys import ApiKeys
from framework.nativeserver.options import CorsOptions
from framework.nativeserver.routes import ROWS, with_model
from framework.nativeserver.transport import JsonResponse
from tests.nativeserver.small_world import small_world
from tests.proxy.asgi_client import start_call

KEY = "s3cret-ключ"
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


def error_of(answer: Any) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["type"], error["message"]


async def test_every_route_says_that_the_model_is_loading_even_without_a_key() -> None:
    async with small_world(api_keys=("k",)) as world:
        world.core.state_ = "loading"
        for path in ("/health", "/v1/models", "/props", "/nowhere"):
            answer = await world.get(path)
            assert (answer.status_code, answer.json()) == (503, LOADING)
        assert (await world.post("/completion", {"prompt": "a"})).json() == LOADING


async def test_a_model_that_is_in_memory_but_not_taken_in_is_still_loading() -> None:
    async with small_world() as world:
        world.app.state.services.created_at = 0
        assert (await world.get("/health")).json() == LOADING


async def test_a_failed_engine_is_a_server_error() -> None:
    async with small_world() as world:
        world.core.state_ = "failed"
        assert error_of(await world.get("/health"))[:2] == (500, "server_error")


async def test_options_are_answered_before_anything_else() -> None:
    async with small_world(api_keys=("k",)) as world:
        world.core.state_ = "loading"
        answer = await world.client.options("/nowhere", headers={"origin": "http://a.b"})
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["access-control-allow-origin"] == "http://a.b"
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE, OPTIONS"
        assert answer.headers["access-control-allow-headers"] == "*"
        assert answer.headers["access-control-allow-credentials"] == "true"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": KEY},
        {"x-api-key": KEY},
        {"x-api-key": "wrong", "authorization": f"Bearer {KEY}"},
        {"x-api-key": "second"},
    ],
    ids=["bearer", "bare", "x-api-key", "one-of-two-headers", "another-key"],
)
async def test_a_key_opens_the_server(headers: dict[str, str]) -> None:
    async with small_world(api_keys=(KEY, "second")) as world:
        raw = [(name, value.encode()) for name, value in headers.items()]
        assert (await world.get("/props", headers=raw)).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/props", {}),
        ("/props", {"authorization": "Bearer wrong"}),
        ("/props", {"authorization": "bearer k"}),
        ("/props", {"x-api-key": ""}),
        ("/props", {"x-api-key": "kk"}),
        ("/props?api_key=k", {}),
        ("/nowhere", {}),
        ("/health/x", {}),
    ],
)
async def test_without_a_key_nothing_is_told(path: str, headers: dict[str, str]) -> None:
    async with small_world(api_keys=("k",)) as world:
        answer = await world.get(path, headers=headers)
        assert error_of(answer) == (401, "authentication_error", "Invalid API Key")


async def test_public_routes_need_no_key() -> None:
    async with small_world(api_keys=("k",), api_prefix="/llm") as world:
        for path in ("/health", "/v1/health", "/models", "/v1/models"):
            assert (await world.get(f"/llm{path}")).status_code == 200
            assert (await world.get(path)).status_code == 401


def test_keys_are_compared_without_an_early_end() -> None:
    keys = ApiKeys(["a", "bb"])
    assert keys.allow([(b"x-api-key", b"bb")])
    assert not keys.allow([(b"x-api-key", b"b")])
    assert not ApiKeys([])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"),
        ("DELETE", "/health"),
        ("GET", "/completion"),
        ("GET", "/health/"),
        ("GET", "//health"),
    ],
)
async def test_an_unknown_path_or_method_is_not_found(method: str, path: str) -> None:
    async with small_world() as world:
        answer = await world.client.request(method, f"http://server{path}")
        assert error_of(answer) == (404, "not_found_error", "File Not Found")
        assert answer.headers["connection"] == "close"


async def test_every_answer_names_the_interface() -> None:
    async with small_world() as world:
        for path in ("/health", "/nowhere"):
            answer = await world.get(path)
            assert answer.headers["server"] == "llama.cpp"
            assert answer.headers["content-type"] == "application/json; charset=utf-8"
            assert answer.headers["access-control-allow-origin"] == ""


@pytest.mark.parametrize(
    ("options", "origin", "allowed"),
    [
        (CorsOptions(), "https://a.b", "https://a.b"),
        (CorsOptions(), "", ""),
        (CorsOptions(credentials=False), "https://a.b", "*"),
        (CorsOptions(origins="localhost"), "http://localhost:3000", "http://localhost:3000"),
        (CorsOptions(origins="localhost"), "http://app.localhost", "http://app.localhost"),
        (CorsOptions(origins="localhost"), "http://127.3.4.5", "http://127.3.4.5"),
        (CorsOptions(origins="localhost"), "http://[::1]:80", "http://[::1]:80"),
        (CorsOptions(origins="localhost"), "http://localhost.evil.com", ""),
        (CorsOptions(origins="localhost"), "http://127.0.0.1.evil.com", ""),
        (CorsOptions(origins="localhost"), "http://[", ""),
        (CorsOptions(origins="https://a.b, https://c.d"), "https://c.d", "https://c.d"),
        (CorsOptions(origins="https://a.b, https://c.d"), "https://e.f", ""),
        (CorsOptions(origins="https://a.b"), "https://a.b.evil", ""),
    ],
)
def test_origins_that_are_let_in(options: CorsOptions, origin: str, allowed: str) -> None:
    headers = cors_headers(options, origin)
    assert headers["access-control-allow-origin"] == allowed
    assert ("vary" in headers) == (allowed != "*")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a": }',
        b"\xff\xfe",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"a": NaN}',
        b"[]",
        b'"text"',
        b"null",
        b"[" * 100_000,
        b'{"content": ' + b"[" * 200 + b"]" * 200 + b"}",
    ],
    ids=["empty", "cut", "no-value", "utf-16", "no-utf-8", "surrogate", "nan", "array", "string", "null"]
    + ["cut-and-deep", "deep"],
)
async def test_a_bad_body_is_the_clients_error(body: bytes) -> None:
    async with small_world() as world:
        answer = await world.client.post("/tokenize", content=body)
        assert error_of(answer)[:2] == (400, "invalid_request_error")
        assert answer.headers["connection"] == "close"


async def test_of_a_key_that_comes_twice_the_last_value_counts() -> None:
    async with small_world() as world:
        answer = await world.client.post("/tokenize", content=b'{"content": 5, "content": "ab"}')
        assert answer.json() == {"tokens": [97, 98]}


def test_depth_is_counted_level_by_level() -> None:
    assert not is_deeper([[], {"a": []}], 3)
    assert not is_deeper([[[]]], 3)
    assert is_deeper([1, {"a": [[]]}], 3)


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, announced: bool) -> None:
    monkeypatch.setattr(transport, "MOST_BODY_BYTES", 1000)

    async def pieces() -> Any:
        for _ in range(20):
            yield b" " * 100

    async with small_world() as world:
        content = b" " * 1001 if announced else pieces()
        answer = await world.client.post("/tokenize", content=content)
        assert error_of(answer)[:2] == (413, "invalid_request_error")


async def test_all_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_BODIES_BYTES", 1000)
    async with small_world() as world:
        slow = start_call(world.app, "/tokenize", chunks=[b" " * 600], whole=False)
        services = world.app.state.services
        while services.bytes_being_read < 600:
            await asyncio.sleep(0)
        answer = await world.client.post("/tokenize", content=b" " * 600)
        assert error_of(answer)[:2] == (503, "unavailable_error")
        slow.gone.set()
        await slow.finished()
        assert (slow.messages, services.bytes_being_read) == ([], 0)
        assert (await world.post("/tokenize", {"content": "a"})).status_code == 200


async def test_a_body_that_stops_coming_is_given_up() -> None:
    async def stuck() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    gone = asyncio.Event()
    async with small_world(timeout_s=0.02) as world:
        scope = {"type": "http", "method": "POST", "path": "/tokenize", "headers": [], "query_string": b""}
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await world.app(scope, stuck, send)
        assert sent[0]["status"] == 408


@pytest.fixture
def broken_route(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def broken(_request: Request) -> Response:
        raise KeyError("/home/somebody/secret")

    rows = [row for row in ROWS if row.paths != ("/metrics",)]
    monkeypatch.setattr(
        "framework.nativeserver.routes.ROWS", (*rows, type(ROWS[0])("GET", ("/metrics",), broken))
    )
    yield


async def test_an_error_nobody_foresaw_is_told_in_the_log_alone(
    broken_route: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_world() as world:
        with caplog.at_level(logging.ERROR, gate.__name__):
            answer = await world.get("/metrics")
        assert error_of(answer)[:2] == (500, "server_error")
        assert "secret" not in answer.text
        assert "secret" in caplog.text


async def test_anthropics_routes_tell_errors_in_anthropics_form() -> None:
    async with small_world(api_keys=("k",), api_prefix="/llm") as world:
        for path in ("/llm/v1/messages", "/llm/v1/messages/count_tokens"):
            assert (await world.post(path, {})).json()["type"] == "error"
        assert "type" not in (await world.post("/llm/v1/messagesx", {})).json()


async def test_an_endpoint_that_finds_the_model_gone_is_tried_again() -> None:
    calls = []

    async def endpoint(request: Request) -> Response:
        calls.append(request)
        if len(calls) < 3:
            world.core.state_ = "sleeping"
            raise FellAsleep
        return JsonResponse({"calls": len(calls)})

    async with small_world() as world:
        request = Request({"type": "http", "app": world.app})
        answer = await with_model(endpoint)(request)
        assert (answer.body, world.core.wakes) == (b'{"calls":3}', 2)
        calls.clear()


async def test_a_request_with_a_body_is_tried_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_world() as world:
        inner, calls = world.core.tokenize, []

        def asleep_once(*given: Any) -> list[int]:
            calls.append(given)
            if len(calls) == 1:
                world.core.state_ = "sleeping"
                raise RuntimeError
            return inner(*given)

        monkeypatch.setattr(world.core, "tokenize", asleep_once)
        answer = await world.post("/tokenize", {"content": "a"})
        assert (answer.json(), len(calls)) == ({"tokens": [97]}, 2)


@pytest.mark.parametrize("path", ["/health", "/props", "/models", "/v1/models", "/metrics", "/slots"])
async def test_who_only_looks_does_not_wake(path: str) -> None:
    async with small_world(metrics=True) as world:
        await world.get("/props")
        world.core.state_ = "sleeping"
        assert (await world.get(path)).status_code == 200
        assert world.core.wakes == 0


async def test_work_wakes_the_engine_and_a_failed_wake_is_told() -> None:
    async with small_world() as world:
        world.core.state_, world.core.wake_result = "sleeping", False
        assert error_of(await world.post("/tokenize", {"content": "a"}))[:2] == (503, "unavailable_error")
        world.core.wake_result = True
        assert (await world.post("/tokenize", {"content": "a"})).json() == {"tokens": [97]}


async def test_a_client_that_goes_while_a_slot_is_busy_ends_its_task() -> None:
    async with small_world() as world:
        call = start_call(world.app, "/slots/0?action=erase")
        while not world.core.tasks:
            await asyncio.sleep(0)
        call.gone.set()
        await call.finished()
        assert world.core.cancelled == [world.core.tasks[0].id]
        assert call.messages == []
