"""Who may do what on `/api/v1` and the dashboard (13 §8, 01 §1, cases AS-03 and AS-04).

Order of the decision, for every request:
(1) without access tables a `Host` that is not ours is refused: a page elsewhere could reach us under a
    name that it made resolve to this machine (with tables, such a page lacks the secret it needs);
(2) a credential in a header decides: the token of this run (everything) or an access key (its role);
(3) a session cookie decides; an action on a cookie also needs a same-origin page and the CSRF token;
(4) otherwise 401. Pages (`visit`) still open where there are no access tables and the listener is on
    loopback: a visitor session is made. The API does not; a script proves itself with the token.

Roles are looked up in the manifest in force, so that a changed `[access]` table acts on the next request.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Literal

from starlette.requests import HTTPConnection
from starlette.responses import Response

from framework.api.errors import ApiError
from framework.api.origin import is_same_origin
from framework.api.services import Services
from framework.api.sessions import IDLE_LIMIT_S, Session
from framework.manifest.addresses import is_loopback
from framework.proxy.errors import ProxyError
from framework.proxy.key_guesses import address_of
from framework.proxy.origin import check_origin
from framework.values.manifest import AccessKey

Role = Literal["view", "operate"]
Via = Literal["token", "key", "session"]

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf_token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
TOKEN_NAME = "token"
VISITOR_NAME = "dashboard"
CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True)
class Caller:
    """A proven caller. `name` is what events say: the name of the access key, `token` or `dashboard`. `key`
    is the access table that was proven, None for the token and where everything is open."""

    name: str
    role: Role
    via: Via
    key: AccessKey | None = None


@dataclass(frozen=True)
class Visit:
    """A browser that may see pages. `new_cookie` must be set on the answer when it is not None."""

    caller: Caller
    session: Session
    new_cookie: str | None = None


def authorise(
    request: HTTPConnection, services: Services, need: Role, *, csrf_token: str | None = None
) -> Caller:
    """The caller, who may do `need`. Raises ApiError 401, 403 or 429.

    `csrf_token` is the field of a submitted form; without it the header `X-CSRF-Token` is read.
    """
    require_host(request, services)
    credential = _credential(request)
    if credential is not None:
        return require_role(_caller_of(credential, request, services), need)
    session = services.sessions.find(request.cookies.get(cookie_name(services)))
    caller = _caller_of_session(session, services) if session is not None else None
    if session is None or caller is None:
        raise ApiError(401, "key_missing", _missing_text(services))
    if request.scope.get("method", "GET") not in SAFE_METHODS:
        _require_own_page(request, session, csrf_token)
    return require_role(caller, need)


def visit(request: HTTPConnection, services: Services) -> Visit:
    """The session of a page view; makes one where the dashboard is open. Raises ApiError 401 or 403."""
    require_host(request, services)
    session = services.sessions.find(request.cookies.get(cookie_name(services)))
    caller = _caller_of_session(session, services) if session is not None else None
    if session is not None and caller is not None:
        return Visit(caller, session)
    if not is_open(services):
        raise ApiError(401, "key_missing", _missing_text(services))
    cookie, session = services.sessions.create("open", VISITOR_NAME)
    return Visit(Caller(VISITOR_NAME, "operate", "session"), session, cookie)


def sign_in(request: HTTPConnection, services: Services, key: str) -> Visit:
    """Start a session for a key typed into the sign-in form. Raises ApiError 401, 403 or 429.

    The form has no session yet and so no CSRF token; it must come from a page of ours all the same.
    """
    require_host(request, services)
    if not is_same_origin(request.headers):
        raise _foreign_page()
    credential = key.strip().encode("utf-8", "surrogateescape")
    caller = _caller_of(credential, request, services)
    if caller.via == "token":
        cookie, session = services.sessions.create("token", caller.name)
    else:
        cookie, session = services.sessions.create("key", caller.name, hashlib.sha256(credential).hexdigest())
    return Visit(replace(caller, via="session"), session, cookie)


def sign_out(request: HTTPConnection, services: Services, *, everywhere: bool = False) -> None:
    """End the session of this browser, or all that its key began. The caller has authorised the request."""
    cookie = request.cookies.get(cookie_name(services))
    session = services.sessions.find(cookie)
    if everywhere and session is not None:
        services.sessions.end_everywhere(session)
    services.sessions.end(cookie)


def set_session_cookie(response: Response, request: HTTPConnection, services: Services, cookie: str) -> None:
    """Put the session cookie on an answer. `Lax` lets a link from elsewhere open a page, never act."""
    response.set_cookie(
        cookie_name(services),
        cookie,
        max_age=int(IDLE_LIMIT_S),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def clear_session_cookie(response: Response, services: Services) -> None:
    """Remove the session cookie."""
    response.delete_cookie(cookie_name(services), path="/", httponly=True, samesite="lax")


def is_open(services: Services) -> bool:
    """Whether pages need no sign-in: no access tables, and only this machine can reach the listener."""
    return not services.current.manifest.access and is_loopback(services.listen.host)


def cookie_name(services: Services) -> str:
    """Cookies do not tell ports apart, so the name does: two managers on one machine stay separate."""
    return f"paddock_{services.listen.port}"


def require_host(request: HTTPConnection, services: Services) -> None:
    """Refuse a request under a foreign name, where there are no access tables. Raises ApiError 403."""
    if services.current.manifest.access:
        return
    try:
        check_origin(request.headers.get("host"), None, services.listen)
    except ProxyError as error:
        raise ApiError(error.status, error.code, error.message) from error


def _credential(request: HTTPConnection) -> bytes | None:
    """The key of the headers as raw bytes, None when there is none. Other schemes than Bearer are refused."""
    header = request.headers.get("authorization")
    if header is None:
        header = request.headers.get("x-api-key")
        return None if header is None else header.strip().encode("latin-1")
    scheme, _, value = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not value.strip():
        raise ApiError(401, "key_invalid", "Authorization must be `Bearer` and a key.", headers=CHALLENGE)
    return value.strip().encode("latin-1")


def _caller_of(credential: bytes, request: HTTPConnection, services: Services) -> Caller:
    digest = hashlib.sha256(credential).hexdigest()
    token_digest = hashlib.sha256(services.token.encode("utf-8")).hexdigest()
    is_token = hmac.compare_digest(digest, token_digest)
    key = services.current.manifest.key_of(digest)
    try:
        services.guesses.judge(address_of(request.scope), digest, is_right=is_token or key is not None)
    except ProxyError as error:
        raise ApiError(error.status, error.code, error.message, headers=error.headers) from error
    if is_token:
        return Caller(TOKEN_NAME, "operate", "token")
    if key is None:
        raise ApiError(401, "key_invalid", "This key is not known.", headers=CHALLENGE)
    if key.dashboard == "none":
        message = f"Key {key.name!r} may not use the dashboard and its API; its `dashboard` is `none`."
        raise ApiError(403, "role_not_allowed", message)
    return Caller(key.name, key.dashboard, "key", key)


def _caller_of_session(session: Session, services: Services) -> Caller | None:
    """What a session is worth under the manifest in force; None when it is worth nothing any more."""
    if session.kind == "token":
        return Caller(session.name, "operate", "session")
    if session.kind == "open":
        return Caller(session.name, "operate", "session") if is_open(services) else None
    key = services.current.manifest.key_of(session.key_sha256 or "")
    if key is None or key.dashboard == "none":
        return None
    return Caller(key.name, key.dashboard, "session", key)


def _require_own_page(request: HTTPConnection, session: Session, csrf_token: str | None) -> None:
    if not is_same_origin(request.headers):
        raise _foreign_page()
    sent = csrf_token if csrf_token is not None else request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(sent.encode("utf-8", "surrogateescape"), session.csrf_token.encode()):
        raise ApiError(403, "csrf_token_invalid", "The page is out of date; reload it and try again.")


def _foreign_page() -> ApiError:
    return ApiError(403, "origin_not_allowed", "Actions are taken from pages of this server only.")


def require_role(caller: Caller, need: Role) -> Caller:
    """The caller, who may do `need`. Raises ApiError 403."""
    if need == "operate" and caller.role != "operate":
        message = f"{caller.name!r} may look but not act; its `dashboard` must be `operate` for that."
        raise ApiError(403, "role_not_allowed", message)
    return caller


def _missing_text(services: Services) -> str:
    if services.current.manifest.access:
        return "Send a key with `Authorization: Bearer`, or sign in on the dashboard."
    return (
        "Send `Authorization: Bearer` with the token of the state directory, which `paddock doctor` names, or"
        " use the `paddock` commands. The token is another one at each `paddock up`: for a program that stays"
        " on, such as a scraper of /metrics, add [access.NAME] with a key and a `dashboard` role."
    )
