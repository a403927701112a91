"""Who may do what: token, access keys by role, browser sessions, foreign pages (13 §8, AS-03, AS-04)."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import (
    authorise,
    clear_session_cookie,
    cookie_name,
    is_open,
    set_session_cookie,
    sign_in,
    sign_out,
    visit,
)
from framework.api.errors import ApiError
from framework.values.manifest import Listener
from tests.api.world import TOKEN, World, key, make_world

VIEW = key("viewer", "view-secret", "view")
OPERATE = key("laptop", "operate-secret", "operate")
NONE = key("tool", "tool-secret", "none")
KEYS = (VIEW, OPERATE, NONE)
OWN_PAGE = {"sec-fetch-site": "same-origin"}
PUBLIC = Listener("0.0.0.0", 8080)


def request(method: str = "GET", headers: dict[str, str] | None = None, scheme: str = "http") -> Request:
    """A request as the server hands it over."""
    sent = {"host": "127.0.0.1:8080", **(headers or {})}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": raw, "scheme": scheme}
    return Request({**scope, "server": ("127.0.0.1", 8080), "query_string": b""})


def refusal(world: World, asked: Request, need: str, csrf_token: str | None = None) -> tuple[int, str]:
    """Status and code with which a request is refused."""
    with pytest.raises(ApiError) as caught:
        authorise(asked, world.services, need, csrf_token=csrf_token)  # type: ignore[arg-type]
    return caught.value.status, caught.value.code


def cookie(world: World, value: str | None) -> dict[str, str]:
    return {"cookie": f"{cookie_name(world.services)}={value}"}


async def ask(world: World, method: str, credential: str | None, path: str = "/status") -> httpx.Response:
    async with world.client(credential) as client:
        return await client.request(method, f"/api/v1{path}")


@pytest.mark.parametrize(
    ("credential", "read", "act"),
    [
        pytest.param(TOKEN, 200, 202, id="token"),
        pytest.param("operate-secret", 200, 202, id="key-that-may-operate"),
        pytest.param("view-secret", 200, 403, id="key-that-may-view"),
        pytest.param("tool-secret", 403, 403, id="key-without-dashboard"),
        pytest.param("guessed", 401, 401, id="unknown-key"),
        pytest.param(None, 401, 401, id="no-key"),
    ],
)
async def test_role_decides_about_reading_and_acting(credential: str | None, read: int, act: int) -> None:
    world = make_world(*KEYS)
    assert (await ask(world, "GET", credential)).status_code == read
    assert (await ask(world, "POST", credential, "/models/chat/load")).status_code == act


@pytest.mark.parametrize(
    ("credential", "read", "act"),
    [
        pytest.param(TOKEN, 200, 202, id="token"),
        pytest.param("guessed", 401, 401, id="unknown-key"),
        pytest.param(None, 401, 401, id="no-key"),
    ],
)
async def test_without_access_tables_the_api_still_wants_the_token(
    credential: str | None, read: int, act: int
) -> None:
    world = make_world()
    assert (await ask(world, "GET", credential)).status_code == read
    assert (await ask(world, "POST", credential, "/models/chat/load")).status_code == act


async def test_refused_caller_changes_nothing() -> None:
    world = make_world(*KEYS)
    for credential in (None, "guessed", "view-secret", "tool-secret"):
        await ask(world, "POST", credential, "/models/chat/unload")
    assert world.fleet.commands == []


def test_key_may_come_in_its_own_header() -> None:
    caller = authorise(request(headers={"x-api-key": "view-secret"}), make_world(*KEYS).services, "view")
    assert (caller.name, caller.role, caller.via) == ("viewer", "view", "key")


def test_scheme_name_has_any_case() -> None:
    asked = request(headers={"authorization": f"bearer  {TOKEN} "})
    assert authorise(asked, make_world().services, "operate").via == "token"


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer ", TOKEN, ""])
def test_other_authorization_is_refused(header: str) -> None:
    assert refusal(make_world(), request(headers={"authorization": header}), "view") == (401, "key_invalid")


def test_bytes_that_are_no_text_are_a_wrong_key() -> None:
    asked = request(headers={"authorization": "Bearer \xff\xfe"})
    assert refusal(make_world(*KEYS), asked, "view") == (401, "key_invalid")


def test_key_with_letters_beyond_ascii_is_known() -> None:
    world = make_world(key("büro", "schlüssel", "view"))
    sent = "schlüssel".encode().decode("latin-1")
    assert (
        authorise(request(headers={"authorization": f"Bearer {sent}"}), world.services, "view").name == "büro"
    )


def test_key_taken_from_the_manifest_is_refused_at_once() -> None:
    world = make_world(*KEYS)
    asked = request(headers={"authorization": "Bearer view-secret"})
    authorise(asked, world.services, "view")
    world.declare(OPERATE)
    assert refusal(world, asked, "view") == (401, "key_invalid")


def test_header_wins_over_a_cookie() -> None:
    world = make_world(*KEYS)
    value, _ = world.services.sessions.create("token", "token")
    asked = request(headers={**cookie(world, value), "authorization": "Bearer guessed"})
    assert refusal(world, asked, "view") == (401, "key_invalid")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost:9999", "[::1]:8080", "paddock.localhost", "192.168.1.5"]
)
def test_names_of_this_machine_are_served(host: str) -> None:
    asked = request(headers={"host": host, "authorization": f"Bearer {TOKEN}"})
    assert authorise(asked, make_world().services, "operate").name == "token"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "a@localhost"]
)
def test_rebound_name_is_refused_on_an_open_listener(host: str) -> None:
    world = make_world()
    asked = request(headers={"host": host, "authorization": f"Bearer {TOKEN}"})
    assert refusal(world, asked, "view") == (403, "host_not_allowed")
    with pytest.raises(ApiError):
        visit(request(headers={"host": host}), world.services)


def test_any_name_is_served_where_everybody_needs_a_key() -> None:
    asked = request(headers={"host": "models.example", "authorization": "Bearer view-secret"})
    assert authorise(asked, make_world(*KEYS).services, "view").name == "viewer"


def test_open_dashboard_makes_a_session_for_a_visitor() -> None:
    world = make_world()
    first = visit(request(), world.services)
    assert first.new_cookie is not None
    assert first.caller.role == "operate"
    again = visit(request(headers=cookie(world, first.new_cookie)), world.services)
    assert again.session is first.session
    assert again.new_cookie is None


@pytest.mark.parametrize("access", [pytest.param(KEYS, id="keys"), pytest.param((), id="none")])
def test_dashboard_is_closed_on_a_public_listener(access: tuple[object, ...]) -> None:
    world = make_world(*access, listen=PUBLIC)  # type: ignore[arg-type]
    assert not is_open(world.services)
    with pytest.raises(ApiError) as caught:
        visit(request(), world.services)
    assert (caught.value.status, caught.value.code) == (401, "key_missing")


def test_public_listener_stays_closed_when_the_tables_go() -> None:
    world = make_world(*KEYS, listen=PUBLIC)
    world.declare()
    assert refusal(world, request(), "view") == (401, "key_missing")
    with pytest.raises(ApiError):
        visit(request(), world.services)


def test_visitor_must_sign_in_once_there_are_access_tables() -> None:
    world = make_world()
    first = visit(request(), world.services)
    world.declare(*KEYS)
    with pytest.raises(ApiError) as caught:
        visit(request(headers=cookie(world, first.new_cookie)), world.services)
    assert caught.value.status == 401


def test_session_of_an_open_dashboard_reads_the_api() -> None:
    world = make_world()
    first = visit(request(), world.services)
    caller = authorise(request(headers=cookie(world, first.new_cookie)), world.services, "view")
    assert (caller.name, caller.via) == ("dashboard", "session")


def test_action_by_cookie_needs_the_page_and_its_token() -> None:
    world = make_world()
    first = visit(request(), world.services)
    sent = {**cookie(world, first.new_cookie), **OWN_PAGE}
    caller = authorise(request("POST", sent), world.services, "operate", csrf_token=first.session.csrf_token)
    assert caller.name == "dashboard"
    in_header = {**sent, "x-csrf-token": first.session.csrf_token}
    assert authorise(request("POST", in_header), world.services, "operate").name == "dashboard"


@pytest.mark.parametrize(
    ("headers", "token", "code"),
    [
        pytest.param(OWN_PAGE, None, "csrf_token_invalid", id="no-token"),
        pytest.param(OWN_PAGE, "", "csrf_token_invalid", id="empty-token"),
        pytest.param(OWN_PAGE, "guessed", "csrf_token_invalid", id="wrong-token"),
        pytest.param(OWN_PAGE, "\udcff", "csrf_token_invalid", id="no-text"),
        pytest.param({}, "right", "origin_not_allowed", id="no-origin"),
        pytest.param({"sec-fetch-site": "cross-site"}, "right", "origin_not_allowed", id="page-elsewhere"),
        pytest.param({"origin": "https://evil.example"}, "right", "origin_not_allowed", id="foreign-origin"),
    ],
)
def test_action_by_cookie_alone_is_refused(headers: dict[str, str], token: str | None, code: str) -> None:
    world = make_world()
    first = visit(request(), world.services)
    sent = request("POST", {**cookie(world, first.new_cookie), **headers})
    given = first.session.csrf_token if token == "right" else token
    assert refusal(world, sent, "operate", given) == (403, code)


def test_token_of_another_session_is_refused() -> None:
    world = make_world()
    mine, other = visit(request(), world.services), visit(request(), world.services)
    sent = request("POST", {**cookie(world, mine.new_cookie), **OWN_PAGE})
    assert refusal(world, sent, "operate", other.session.csrf_token) == (403, "csrf_token_invalid")


@pytest.mark.parametrize(
    ("typed", "name", "role"),
    [
        pytest.param(TOKEN, "token", "operate", id="token"),
        pytest.param(" view-secret\n", "viewer", "view", id="key-with-blanks-around"),
        pytest.param("operate-secret", "laptop", "operate", id="key"),
    ],
)
def test_sign_in_gives_a_session_of_that_role(typed: str, name: str, role: str) -> None:
    world = make_world(*KEYS)
    signed_in = sign_in(request("POST", OWN_PAGE), world.services, typed)
    again = visit(request(headers=cookie(world, signed_in.new_cookie)), world.services)
    assert (again.caller.name, again.caller.role) == (name, role)


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        pytest.param("guessed", 401, id="unknown"),
        pytest.param("", 401, id="nothing"),
        pytest.param("tool-secret", 403, id="key-without-dashboard"),
        pytest.param("\udcff", 401, id="no-text"),
    ],
)
def test_sign_in_with_the_wrong_key_is_refused(typed: str, status: int) -> None:
    with pytest.raises(ApiError) as caught:
        sign_in(request("POST", OWN_PAGE), make_world(*KEYS).services, typed)
    assert caught.value.status == status


def test_page_elsewhere_cannot_sign_a_browser_in() -> None:
    with pytest.raises(ApiError) as caught:
        sign_in(
            request("POST", {"origin": "https://evil.example"}), make_world(*KEYS).services, "view-secret"
        )
    assert caught.value.code == "origin_not_allowed"


def test_session_of_a_viewer_may_not_act() -> None:
    world = make_world(*KEYS)
    signed_in = sign_in(request("POST", OWN_PAGE), world.services, "view-secret")
    sent = request("POST", {**cookie(world, signed_in.new_cookie), **OWN_PAGE})
    assert refusal(world, sent, "operate", signed_in.session.csrf_token) == (403, "role_not_allowed")


def test_session_ends_with_its_key() -> None:
    world = make_world(*KEYS)
    signed_in = sign_in(request("POST", OWN_PAGE), world.services, "view-secret")
    world.declare(OPERATE)
    assert refusal(world, request(headers=cookie(world, signed_in.new_cookie)), "view") == (
        401,
        "key_missing",
    )


def test_session_follows_a_changed_role() -> None:
    world = make_world(*KEYS)
    signed_in = sign_in(request("POST", OWN_PAGE), world.services, "operate-secret")
    world.declare(key("laptop", "operate-secret", "view"))
    asked = request(headers=cookie(world, signed_in.new_cookie))
    assert visit(asked, world.services).caller.role == "view"


def test_sign_out_ends_the_session() -> None:
    world = make_world(*KEYS)
    signed_in = sign_in(request("POST", OWN_PAGE), world.services, "view-secret")
    asked = request("POST", cookie(world, signed_in.new_cookie))
    sign_out(asked, world.services)
    assert refusal(world, request(headers=cookie(world, signed_in.new_cookie)), "view") == (
        401,
        "key_missing",
    )


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_cookie_is_kept_from_scripts_and_other_sites(scheme: str, secure: bool) -> None:
    response = Response()
    set_session_cookie(response, request(scheme=scheme), make_world().services, "value")
    header = response.headers["set-cookie"]
    assert header.startswith("paddock_8080=value;")
    assert "HttpOnly" in header
    assert "SameSite=lax" in header
    assert ("Secure" in header) is secure


def test_cleared_cookie_expires() -> None:
    response = Response()
    clear_session_cookie(response, make_world().services)
    assert "Max-Age=0" in response.headers["set-cookie"]


def test_two_managers_on_one_machine_have_cookies_of_their_own() -> None:
    one, other = make_world(listen=Listener(port=8080)), make_world(listen=Listener(port=8081))
    assert cookie_name(one.services) != cookie_name(other.services)


async def test_foreign_origin_gets_no_cors_header() -> None:
    async with make_world().client(origin="https://evil.example") as client:
        response = await client.get("/api/v1/status")
    assert not [name for name in response.headers if name.startswith("access-control-")]


async def test_refusal_asks_for_a_bearer_key() -> None:
    response = await ask(make_world(*KEYS), "GET", "guessed")
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["type"] == "authentication_error"
