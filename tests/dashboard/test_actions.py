"""Buttons: what they ask of the fleet, and who may press them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

import httpx
import pytest

from framework.values.manifest import AccessKey
from tests.dashboard import samples
from tests.dashboard.client import BASE_URL, SAME_ORIGIN, browser, csrf_of, page, submit
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.html import parse
from tests.dashboard.samples import HOSTILE

VIEWER = AccessKey("night", sha256(b"look").hexdigest(), dashboard="view")
OPERATOR = AccessKey("laptop", sha256(b"act").hexdigest(), dashboard="operate")


@asynccontextmanager
async def open_dashboard(*names: str) -> AsyncIterator[tuple[FakeSystem, httpx.AsyncClient]]:
    system = make_system(*[samples.model(name) for name in names or ("smollm2",)])
    async with browser(system) as client:
        yield system, client


async def sign_in(client: httpx.AsyncClient, key: str) -> None:
    answer = await client.post("/sign-in", data={"key": key, "next": "/"}, headers=SAME_ORIGIN)
    assert answer.status_code == 303


@pytest.mark.parametrize(
    ("path", "fields", "asked"),
    [
        ("load", {}, ("load", "smollm2", "", "dashboard")),
        ("reload", {}, ("reload", "smollm2", "", "dashboard")),
        ("unload", {}, ("unload", "smollm2", "drain", "dashboard")),
        ("unload", {"mode": "kill"}, ("unload", "smollm2", "kill", "dashboard")),
        ("unload", {"mode": "sudo"}, ("unload", "smollm2", "drain", "dashboard")),
    ],
    ids=["load", "reload", "unload", "kill", "unknown-mode"],
)
async def test_a_button_asks_the_fleet(path: str, fields: dict[str, str], asked: tuple[str, ...]) -> None:
    async with open_dashboard() as (system, client):
        answer = await submit(client, f"/models/smollm2/{path}", **fields)
        assert answer.status_code == 303
        assert system.fleet.asked == [asked]


async def test_an_action_is_confirmed_on_the_page_it_came_from() -> None:
    async with open_dashboard() as (_, client):
        answer = await submit(client, "/models/smollm2/load", back="/?state=ready")
        assert answer.headers["location"] == "/?state=ready&done=1"
        tree = await page(client, answer.headers["location"])
    assert "load of smollm2 accepted" in tree.one(id="notice").text


async def test_a_confirmation_cannot_be_made_up() -> None:
    async with open_dashboard() as (system, client):
        system.services.events.record("state", "not a command")
        for number in ("1", "99", "x", "-1", "9" * 30):
            tree = await page(client, f"/?done={number}")
            assert tree.one(id="notice").text == ""


async def test_a_confirmation_does_not_stick_to_links() -> None:
    async with open_dashboard() as (_, client):
        answer = await submit(client, "/models/smollm2/load")
        tree = await page(client, answer.headers["location"])
    assert tree.one(id="refresh").attributes["href"] == "/"


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example/", "/\\evil.example", "evil", "", "/a\r\nX: y"]
)
async def test_an_action_never_leads_away(back: str) -> None:
    async with open_dashboard() as (_, client):
        answer = await submit(client, "/models/smollm2/load", back=back)
    assert answer.headers["location"] == "/?done=1"


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_buttons_reach_the_model_whatever_its_name_holds(number: int) -> None:
    name = HOSTILE[number]
    async with open_dashboard(name) as (system, client):
        tree = await page(client, "/")
        button = next(b for b in tree.one("tbody").all("button") if b.text.startswith("Reload"))
        await submit(client, button.attributes["formaction"])
    assert system.fleet.asked == [("reload", name, "", "dashboard")]


async def test_a_name_that_ends_in_a_verb_is_still_a_name() -> None:
    async with open_dashboard("a/load", "a") as (system, client):
        await submit(client, "/models/a%2Fload/unload")
    assert system.fleet.asked == [("unload", "a/load", "drain", "dashboard")]


async def test_a_script_gets_the_confirmation_alone() -> None:
    async with open_dashboard() as (_, client):
        token = await csrf_of(client)
        headers = {**SAME_ORIGIN, "hx-request": "true", "hx-target": "notice"}
        answer = await client.post("/models/smollm2/load", data={"csrf_token": token}, headers=headers)
        followed = await client.get(answer.headers["location"], headers=headers)
    assert [e.attributes["id"] for e in parse(followed.text).all() if "id" in e.attributes] == ["notice"]


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        pytest.param(SAME_ORIGIN, "", 403, id="no-token"),
        pytest.param(SAME_ORIGIN, "x" * 43, 403, id="wrong-token"),
        pytest.param({"sec-fetch-site": "cross-site"}, None, 403, id="another-site"),
        pytest.param({"sec-fetch-site": "same-site"}, None, 403, id="another-port"),
        pytest.param({"origin": "https://evil.example"}, None, 403, id="foreign-origin"),
        pytest.param({"origin": "null"}, None, 403, id="no-origin"),
        pytest.param({}, None, 403, id="no-word-of-it"),
        pytest.param({"origin": BASE_URL}, None, 303, id="own-origin-of-an-old-browser"),
    ],
)
async def test_only_pages_of_ours_can_act(headers: dict[str, str], token: str | None, status: int) -> None:
    async with open_dashboard() as (system, client):
        own = await csrf_of(client)
        data = {"csrf_token": own if token is None else token}
        answer = await client.post("/models/smollm2/unload", data=data, headers=headers)
        assert answer.status_code == status
        assert bool(system.fleet.asked) == (status == 303)


async def test_the_token_of_another_session_is_worth_nothing() -> None:
    async with open_dashboard() as (system, client), browser(system) as other:
        foreign = await csrf_of(other)
        await csrf_of(client)
        answer = await submit(client, "/models/smollm2/load", csrf_token=foreign)
    assert answer.status_code == 403


async def test_a_refusal_is_shown_where_the_button_was() -> None:
    async with open_dashboard() as (_, client):
        await csrf_of(client)
        headers = {**SAME_ORIGIN, "hx-request": "true", "hx-target": "notice"}
        answer = await client.post("/models/smollm2/load", data={"csrf_token": "x"}, headers=headers)
    assert "out of date" in parse(answer.text).one(id="notice").text


async def test_an_unknown_model_is_refused() -> None:
    async with open_dashboard() as (system, client):
        answer = await submit(client, "/models/nothing/load")
    assert (answer.status_code, system.fleet.asked) == (404, [])


async def test_a_model_that_only_drains_takes_no_commands() -> None:
    async with open_dashboard() as (system, client):
        token = await csrf_of(client)
        system.fleet.put(samples.model(removed=True))
        answer = await submit(client, "/models/smollm2/load", csrf_token=token)
    assert answer.status_code == 404
    assert "no longer in the manifest" in parse(answer.text).one("main").text


async def test_an_action_is_not_taken_by_a_link() -> None:
    async with open_dashboard() as (system, client):
        answer = await client.get("/models/smollm2/load")
    assert (answer.status_code, system.fleet.asked) == (404, [])


async def test_a_form_of_many_megabytes_is_refused() -> None:
    async with open_dashboard() as (system, client):
        answer = await submit(client, "/models/smollm2/load", back="/" + "a" * 2**20)
    assert (answer.status_code, system.fleet.asked) == (413, [])


async def test_who_may_only_view_cannot_act() -> None:
    system = make_system(samples.model(), access=[VIEWER])
    async with browser(system) as client:
        await sign_in(client, "look")
        tree = await page(client, "/")
        token = tree.one("input", name="csrf_token").attributes["value"]
        answer = await submit(client, "/models/smollm2/load", csrf_token=token)
    assert (answer.status_code, system.fleet.asked) == (403, [])
    assert "operate" in parse(answer.text).one("main").text


async def test_an_action_carries_the_name_of_the_key() -> None:
    system = make_system(samples.model(), access=[OPERATOR])
    async with browser(system) as client:
        await sign_in(client, "act")
        await submit(client, "/models/smollm2/load")
    assert system.fleet.asked == [("load", "smollm2", "", "laptop")]


async def test_an_action_without_session_leads_to_the_sign_in_page() -> None:
    system = make_system(samples.model(), access=[OPERATOR])
    async with browser(system) as client:
        answer = await client.post("/models/smollm2/load", data={"csrf_token": "x"}, headers=SAME_ORIGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2F")
    assert system.fleet.asked == []
