"""Signing in and out."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import urlencode

import httpx
import pytest

from framework.proxy.key_guesses import TRIES
from framework.values.manifest import AccessKey, DashboardRole
from tests.dashboard import samples
from tests.dashboard.client import BASE_URL, SAME_ORIGIN, browser, page, submit
from tests.dashboard.fake_system import TOKEN, FakeSystem, make_system, set_access
from tests.dashboard.html import parse


def guarded_system(role: DashboardRole = "operate") -> FakeSystem:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard=role)
    return make_system(samples.model(), access=[key])


async def try_key(client: httpx.AsyncClient, key: str, next_path: str = "/") -> httpx.Response:
    return await client.post("/sign-in", data={"key": key, "next": next_path}, headers=SAME_ORIGIN)


async def test_a_key_opens_the_page_that_was_asked_for() -> None:
    async with browser(guarded_system()) as client:
        answer = await try_key(client, "secret", "/models/smollm2?q=a")
        assert answer.headers["location"] == "/models/smollm2?q=a"
        assert "laptop" in (await page(client, "/models/smollm2")).one("form", action="/sign-out").text


async def test_the_token_of_this_run_opens_every_page() -> None:
    async with browser(guarded_system("none")) as client:
        assert (await try_key(client, TOKEN)).status_code == 303
        await page(client, "/")


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    async with browser(guarded_system()) as client:
        cookie = (await try_key(client, "secret")).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=" in cookie


@pytest.mark.parametrize("key", ["wrong", "", "secret2", "\udcff\u202e"])
async def test_a_wrong_key_shows_the_form_again(key: str) -> None:
    async with browser(guarded_system()) as client:
        answer = await client.post(
            "/sign-in",
            content=b"next=%2Fevents&key=" + key.encode("utf-8", "surrogateescape"),
            headers={**SAME_ORIGIN, "content-type": "application/x-www-form-urlencoded"},
        )
    tree = parse(answer.text)
    assert answer.status_code == 401
    assert "not known" in tree.one(id="notice").text
    assert tree.one("input", name="next").attributes["value"] == "/events"


async def test_a_key_without_dashboard_role_is_told_so() -> None:
    async with browser(guarded_system("none")) as client:
        answer = await try_key(client, "secret")
    assert answer.status_code == 403
    assert "dashboard" in parse(answer.text).one(id="notice").text


async def test_a_typed_key_is_never_shown_again() -> None:
    async with browser(guarded_system()) as client:
        assert "my-typo" not in (await try_key(client, "my-typo")).text


async def test_a_key_cannot_be_typed_on_a_foreign_page() -> None:
    async with browser(guarded_system()) as client:
        headers = {"sec-fetch-site": "cross-site"}
        answer = await client.post("/sign-in", data={"key": "secret"}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


@pytest.mark.parametrize("next_path", ["https://evil.example", "//evil.example", "/\\evil.example"])
async def test_signing_in_never_leads_away(next_path: str) -> None:
    async with browser(guarded_system()) as client:
        assert (await try_key(client, "secret", next_path)).headers["location"] == "/"


async def test_signing_out_ends_the_session() -> None:
    async with browser(guarded_system()) as client:
        await try_key(client, "secret")
        answer = await submit(client, "/sign-out")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert (await client.get("/")).status_code == 303


async def test_signing_out_needs_the_token_of_the_session() -> None:
    async with browser(guarded_system()) as client:
        await try_key(client, "secret")
        assert (await submit(client, "/sign-out", csrf_token="x")).status_code == 403
        await page(client, "/")


async def test_a_key_taken_out_of_the_manifest_loses_its_session() -> None:
    system = guarded_system()
    async with browser(system) as client:
        await try_key(client, "secret")
        set_access(system, AccessKey("other", sha256(b"x").hexdigest(), dashboard="operate"))
        assert (await client.get("/")).status_code == 303


async def test_where_no_key_is_needed_there_is_no_form() -> None:
    async with browser(make_system(samples.model())) as client:
        answer = await client.get("/sign-in?next=/events")
        assert (answer.status_code, answer.headers["location"]) == (303, "/events")
        assert list((await page(client, "/")).all("form", action="/sign-out")) == []


async def test_before_signing_in_nothing_is_told() -> None:
    async with browser(guarded_system()) as client:
        tree = await page(client, "/sign-in")
    assert "smollm2" not in tree.text
    assert list(tree.all("nav")) == []


async def test_signing_out_everywhere_ends_the_sessions_of_all_browsers() -> None:
    system = guarded_system()
    async with browser(system) as here, browser(system) as there:
        await try_key(here, "secret")
        await try_key(there, "secret")
        answer = await submit(here, "/sign-out", everywhere="yes")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert (await here.get("/")).status_code == 303
        assert (await there.get("/")).status_code == 303


async def test_signing_out_here_leaves_other_browsers_alone() -> None:
    system = guarded_system()
    async with browser(system) as here, browser(system) as there:
        await try_key(here, "secret")
        await try_key(there, "secret")
        await submit(here, "/sign-out")
        assert (await here.get("/")).status_code == 303
        await page(there, "/")


async def test_who_guesses_is_told_to_wait_on_the_same_form() -> None:
    async with browser(guarded_system()) as client:
        for number in range(TRIES):
            assert (await try_key(client, f"guess {number}")).status_code == 401
        answer = await try_key(client, "secret", "/events")
    tree = parse(answer.text)
    assert (answer.status_code, "set-cookie" in answer.headers) == (429, False)
    assert int(answer.headers["retry-after"]) >= 1
    assert "Too many wrong keys" in tree.one(id="notice").text
    assert tree.one("input", name="next").attributes["value"] == "/events"


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        pytest.param(f"{BASE_URL}/manifest?file=a", "/manifest?file=a", id="a-page-of-ours"),
        pytest.param("https://evil.example/manifest", "/", id="a-page-of-others"),
        pytest.param(f"{BASE_URL}//evil.example/x", "/", id="an-address-that-leads-elsewhere"),
        pytest.param("http://127.0.0.1:8080.evil.example/x", "/", id="a-name-like-ours"),
        pytest.param("http://[", "/", id="no-address"),
        pytest.param("", "/", id="nothing"),
    ],
)
async def test_a_form_without_a_session_leads_back_to_its_page(referer: str, back: str) -> None:
    async with browser(guarded_system()) as client:
        headers = {**SAME_ORIGIN, "referer": referer}
        answer = await client.post("/models/smollm2/load", data={"x": "y"}, headers=headers)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/sign-in?{urlencode({'next': back})}"
