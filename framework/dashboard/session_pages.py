"""Signing in with a key whose `dashboard` is `view` or `operate`, and signing out (01 §1)."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from framework.api.auth import (
    CSRF_FIELD,
    authorise,
    clear_session_cookie,
    is_open,
    set_session_cookie,
    sign_in,
    sign_out,
)
from framework.api.errors import ApiError
from framework.dashboard.answers import SIGN_IN, own_path, see_other
from framework.dashboard.desk import Desk
from framework.dashboard.forms import field, read_form
from framework.dashboard.htmx import VARY
from framework.dashboard.pages.shell import NOBODY, Notice, Shell


@dataclass(frozen=True)
class SignInPage:
    """The form; `next` is the page that was asked for."""

    shell: Shell
    next: str


async def show_sign_in(desk: Desk, request: Request) -> Response:
    """The form. Where no key is needed there is nothing to fill in."""
    next_path = own_path(request.query_params.get("next", "/"))
    if is_open(desk.services):
        return see_other(next_path)
    return _form(desk, next_path, Notice(), 200)


async def do_sign_in(desk: Desk, request: Request) -> Response:
    """Try a key; a wrong one shows the form again and says so."""
    form = await read_form(request)
    next_path = own_path(field(form, "next"))
    try:
        seen = sign_in(request, desk.services, field(form, "key"))
    except ApiError as error:
        answer = _form(desk, next_path, Notice("bad", error.message), error.status)
        answer.headers.update(error.headers)
        return answer
    response = see_other(next_path)
    if seen.new_cookie is not None:
        set_session_cookie(response, request, desk.services, seen.new_cookie)
    return response


async def do_sign_out(desk: Desk, request: Request) -> Response:
    """End the session of this browser, or every session of its key."""
    form = await read_form(request)
    authorise(request, desk.services, "view", csrf_token=field(form, CSRF_FIELD) or None)
    sign_out(request, desk.services, everywhere=bool(field(form, "everywhere")))
    response = see_other(SIGN_IN)
    clear_session_cookie(response, desk.services)
    return response


def _form(desk: Desk, next_path: str, notice: Notice, status: int) -> Response:
    shell = Shell("Sign in", "none", desk.services.version, None, notice, SIGN_IN)
    html = desk.templates.page("sign_in.html", SignInPage(shell, next_path), NOBODY)
    return HTMLResponse(html, status, headers={"vary": VARY})
