"""All routes of the application, also those that are added later: who may act, and what every answer says.

A route is found here by being served. What it may do without more proof than a cookie is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

import httpx
import pytest
from starlette.routing import Route

from framework.dashboard.headers import CONTENT_SECURITY_POLICY
from framework.proxy.endpoints import NAMED_ENDPOINTS, PATHS, SUFFIXES
from framework.values.manifest import AccessKey
from tests.dashboard import samples
from tests.dashboard.client import BASE_URL, SAME_ORIGIN, browser, csrf_of
from tests.dashboard.fake_system import TEMPLATES, TOKEN, FakeSystem, make_system
from tests.dashboard.html import parse

OPERATE = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="operate")
VIEW = AccessKey("night-shift", sha256(b"look").hexdigest(), dashboard="view")
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
FOREIGN = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
# What a key that may only look may send: its own session, and what it may ask of models anyway.
FOR_VIEWERS = ("/sign-in", "/sign-out", "/try")
REFUSED = {401, 403}


def system() -> FakeSystem:
    return make_system(samples.model(), access=[OPERATE, VIEW])


def paths(running: FakeSystem) -> list[str]:
    """An address for every route, and one for each of the endpoint's, which share a few."""
    served = [route.path for route in running.app.routes if isinstance(route, Route)]
    public = [path for path in (*SUFFIXES, *NAMED_ENDPOINTS) if path not in served]
    found = [*served, *public, *(f"/m/smollm2{suffix}" for suffix in SUFFIXES)]
    return [example(path) for path in found if path not in PATHS or "{" not in path]


def dashboard_paths(running: FakeSystem, method: str) -> list[str]:
    """Addresses of the dashboard that take a method."""
    routes = [route for route in running.app.routes if isinstance(route, Route)]
    mine = [
        route for route in routes if route.methods and "/api/" not in route.path and method in route.methods
    ]
    return [example(route.path) for route in mine]


def all_blocks() -> set[str]:
    """The names of all blocks of all templates."""
    texts = (path.read_text() for path in TEMPLATES.glob("*.html"))
    return {name for text in texts for name in re.findall(r"{% block (\w+)", text)}


def example(path: str) -> str:
    """An address that a route answers: a command where it takes whatever follows."""
    return re.sub(r"\{[^}]*\}", "smollm2", re.sub(r"(/models)/\{rest[^}]*\}", r"\1/smollm2/load", path))


async def sign_in(client: httpx.AsyncClient, key: str) -> str:
    """Begin a session; its token for forms."""
    answer = await client.post("/sign-in", data={"key": key}, headers=SAME_ORIGIN)
    assert answer.status_code == 303, answer.text
    return await csrf_of(client)


async def send(
    client: httpx.AsyncClient, method: str, path: str, token: str, **headers: str
) -> httpx.Response:
    """A form with a token, as a page would send it."""
    body = {"csrf_token": token} if token else {}
    return await client.request(method, path, data=body, headers=headers)


def nothing_was_done(running: FakeSystem) -> bool:
    return running.fleet.asked == [] and running.leases.acquired == []


def wrong_proofs(token: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Tokens and headers of which none may act."""
    yield "", SAME_ORIGIN
    yield "guessed", SAME_ORIGIN
    yield token, FOREIGN
    yield token, {}
    yield "", {**FOREIGN, "x-csrf-token": token}


async def test_a_cookie_alone_acts_nowhere() -> None:
    running = system()
    async with browser(running) as client:
        token = await sign_in(client, "secret")
        for path in paths(running):
            for proof, headers in wrong_proofs(token):
                if path == "/sign-in" and headers is SAME_ORIGIN:
                    continue  # There is no session yet that could have a token.
                for method in UNSAFE:
                    answer = await send(client, method, path, proof, **headers)
                    assert answer.status_code in {*REFUSED, 404, 405}, (method, path, headers)
    assert nothing_was_done(running)


async def test_whatever_a_form_can_be_sent_to_asks_for_its_proof() -> None:
    running = system()
    async with browser(running) as client:
        token = await sign_in(client, "secret")
        posts = dashboard_paths(running, "POST")
        assert len(posts) >= 8
        for path in posts:
            for proof, headers in ((token, FOREIGN), ("guessed", FOREIGN)):
                answer = await send(client, "POST", path, proof, **headers)
                assert answer.status_code == 403, (path, answer.status_code)
            if path != "/sign-in":
                answer = await send(client, "POST", path, "", **SAME_ORIGIN)
                assert answer.status_code == 403, (path, answer.status_code)


async def test_without_a_key_nothing_acts_and_nothing_is_told() -> None:
    running = system()
    async with browser(running) as client:
        for path in paths(running):
            for method in ("GET", *UNSAFE):
                answer = await client.request(method, path, headers=SAME_ORIGIN)
                assert answer.status_code in {*REFUSED, 303, 404, 405, 200}, (method, path)
                if answer.status_code == 200:
                    assert path.startswith(("/health", "/v1/health", "/sign-in", "/static")), (method, path)
                assert samples.NOW.isoformat() not in answer.text
    assert nothing_was_done(running)


async def test_where_everything_is_open_pages_of_others_act_nowhere() -> None:
    running = make_system(samples.model())
    async with browser(running) as client:
        token = await csrf_of(client)
        for path in paths(running):
            answer = await send(client, "POST", path, token, **FOREIGN)
            assert answer.status_code in {*REFUSED, 404, 405}, path
    assert nothing_was_done(running)


async def test_who_may_only_look_acts_nowhere() -> None:
    running = system()
    async with browser(running) as client:
        token = await sign_in(client, "look")
        for path in dashboard_paths(running, "POST"):
            if path.startswith(FOR_VIEWERS):
                continue
            answer = await send(client, "POST", path, token, **SAME_ORIGIN)
            assert (answer.status_code, "may look but not act" in answer.text) == (403, True), path
    assert nothing_was_done(running)


async def test_who_may_only_look_is_offered_no_button_that_acts() -> None:
    running = system()
    async with browser(running) as client:
        await sign_in(client, "look")
        for path in dashboard_paths(running, "GET"):
            answer = await client.get(path) if path != "/live" else None
            if answer is None or not answer.headers.get("content-type", "").startswith("text/html"):
                continue
            forms = parse(answer.text).all("form", method="post")
            assert {form.attributes["action"] for form in forms} <= set(FOR_VIEWERS), path


@pytest.mark.parametrize("key", ["", "secret"], ids=["stranger", "signed-in"])
async def test_every_answer_says_how_it_may_be_used(key: str) -> None:
    running = system()
    async with browser(running) as client:
        if key:
            await sign_in(client, key)
        for path in [*paths(running), "/no/such/page", "/static/none.css", "/models/none"]:
            for method in ("GET", "POST", "DELETE"):
                if (method, path) == ("GET", "/api/v1/events/stream") or path == "/live":
                    continue  # They never end; the headers of live pages are looked at elsewhere.
                answer = await client.request(method, path)
                assert answer.headers["x-content-type-options"] == "nosniff", (method, path)
                if answer.headers.get("content-type", "").startswith(("text/html", "text/plain")):
                    is_log = path.startswith("/api/") or path == "/metrics"
                    assert is_log or answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY, (
                        path
                    )


@pytest.mark.parametrize("role", ["view", "operate"])
async def test_no_page_holds_a_secret(role: str) -> None:
    running = system()
    key = "secret" if role == "operate" else "look"
    async with browser(running) as client:
        await sign_in(client, key)
        cookie = next(iter(client.cookies.jar)).value
        for path in dashboard_paths(running, "GET"):
            if path == "/live":
                continue
            text = (await client.get(path)).text
            for secret in (TOKEN, OPERATE.key_sha256, VIEW.key_sha256, cookie, "very-secret"):
                assert secret not in text, (path, secret)


async def test_whatever_a_script_names_as_its_target_is_answered() -> None:
    running = system()
    targets = [name.replace("_", "-") for name in {*all_blocks(), "no_such"}]
    async with browser(running) as client:
        await sign_in(client, "secret")
        for path in dashboard_paths(running, "GET"):
            for target in () if path == "/live" else targets:
                headers = {"hx-request": "true", "hx-target": target}
                answer = await client.get(path, headers=headers)
                assert answer.status_code < 500, (path, target)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        pytest.param("/pools/", "/pools", id="a-page"),
        pytest.param("/events///?kind=applied", "/events?kind=applied", id="with-its-query"),
        pytest.param("/requests/", "/requests", id="a-list"),
        pytest.param("//evil.example/", None, id="another-server"),
        pytest.param("//pools/", None, id="another-server-by-the-name-of-a-page"),
        pytest.param("/nowhere/", None, id="nothing"),
    ],
)
async def test_a_slash_too_many_leads_to_the_page_on_this_server(path: str, meant: str | None) -> None:
    async with browser(system()) as client:
        answer = await client.get(f"{BASE_URL}{path}", headers={"host": "evil.example"})
    assert answer.headers.get("location") == meant
    assert answer.status_code == (404 if meant is None else 307)
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
