"""Pages of other origins: refused unless the manifest names them, and what a browser is told then (AS-04)."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from framework.proxy.cors import answer_headers, is_allowed, preflight_headers
from framework.values.manifest import AccessKey, ServerSettings
from tests.proxy.world import HELLO, World, model

PAGE = "https://chat.example"
ASKS = {"origin": PAGE, "access-control-request-method": "POST"}
KEY = AccessKey("laptop", sha256(b"s3cret").hexdigest())


def declare(world: World, *cors: str, keyed: bool = True) -> None:
    access = (KEY,) if keyed else ()
    world.declare(model("smol"), access=access, server=replace(ServerSettings(), cors=cors))


@pytest.mark.parametrize(
    ("origin", "allowed", "is_so"),
    [
        (PAGE, (PAGE,), True),
        ("HTTPS://Chat.Example", (PAGE,), True),
        (PAGE, ("*",), True),
        (None, ("*",), False),
        ("null", (PAGE,), False),
        (PAGE + ".evil.example", (PAGE,), False),
        ("http://chat.example", (PAGE,), False),
        (PAGE, (), False),
    ],
    ids=["named", "any-case", "all", "no-page", "null", "longer", "other-scheme", "off"],
)
def test_an_origin_is_compared_as_a_whole(origin: str | None, allowed: tuple[str, ...], is_so: bool) -> None:
    assert is_allowed(origin, allowed) is is_so


def test_nothing_allows_cookies() -> None:
    told = {**answer_headers(ASKS, (PAGE,)), **(preflight_headers(ASKS, (PAGE,)) or {})}
    assert "access-control-allow-credentials" not in told


def test_what_a_page_wants_to_send_is_repeated_only_if_it_is_a_list_of_names() -> None:
    fine = {**ASKS, "access-control-request-headers": "authorization, x-stainless-os"}
    assert (preflight_headers(fine, (PAGE,)) or {})["access-control-allow-headers"] == (
        "authorization, x-stainless-os"
    )
    for bad in ("a\r\nset-cookie: x", "a,,b", "a" * 9000, "é"):
        hostile = {**ASKS, "access-control-request-headers": bad}
        assert "access-control-allow-headers" not in (preflight_headers(hostile, (PAGE,)) or {})


async def test_a_browser_that_asks_is_told_without_a_key(world: World) -> None:
    declare(world, PAGE)
    answer = await world.ask("/v1/chat/completions", method="OPTIONS", headers=ASKS)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "GET, POST"


async def test_answers_and_errors_may_be_read_by_the_page(world: World) -> None:
    declare(world, PAGE)
    for headers, status in (({"x-api-key": "s3cret"}, 200), ({}, 401)):
        answer = await world.ask("/v1/chat/completions", HELLO, headers={"origin": PAGE, **headers})
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["vary"] == "origin"


@pytest.mark.parametrize("cors", [(), (PAGE,)], ids=["off", "others"])
async def test_a_page_that_is_not_named_gets_no_header(world: World, cors: tuple[str, ...]) -> None:
    declare(world, *cors)
    evil = {"origin": "https://evil.example"}
    answer = await world.ask("/v1/chat/completions", HELLO, headers={**evil, "x-api-key": "s3cret"})
    assert "access-control-allow-origin" not in answer.headers
    asked = await world.ask("/v1/models", method="OPTIONS", headers={**ASKS, **evil})
    assert asked.status == 405
    assert "access-control-allow-origin" not in asked.headers


async def test_an_open_endpoint_serves_a_named_page_under_its_own_name_only(world: World) -> None:
    declare(world, PAGE, keyed=False)
    assert (await world.ask("/v1/chat/completions", HELLO, headers={"origin": PAGE})).status == 200
    rebound = {"origin": PAGE, "host": "evil.example"}
    answer = await world.ask("/v1/chat/completions", HELLO, headers=rebound)
    assert answer.error()["code"] == "host_not_allowed"
    other = await world.ask("/v1/chat/completions", HELLO, headers={"origin": "https://evil.example"})
    assert other.error()["code"] == "origin_not_allowed"
