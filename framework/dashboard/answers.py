"""From a page value to an answer: whole page, part of it, redirect or error. Called by every handler."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from framework.api.auth import Visit, is_open, require_host, set_session_cookie, visit
from framework.api.errors import ApiError
from framework.dashboard.desk import Desk
from framework.dashboard.htmx import AS_NOTICE, VARY, is_htmx, wanted_block, wants_part
from framework.dashboard.pages.shell import NOBODY, Notice, Section, Shell, Viewer, banner_of, notice_of
from framework.proxy.errors import CLIENT_CLOSED
from framework.values.event import Event

log = logging.getLogger(__name__)

SIGN_IN = "/sign-in"
SEE_OTHER = 303
EVENT_STREAM = "text/event-stream"
NUMBER_LIMIT = 15

Handler = Callable[[Desk, Request], Awaitable[Response]]


@dataclass(frozen=True)
class ErrorPage:
    """Why there is no page; `near` are names that may have been meant, with their addresses."""

    shell: Shell
    status: int
    heading: str
    message: str
    near: tuple[tuple[str, str], ...] = ()


class NotFound(ApiError):
    """No such model; carries what may have been meant."""

    def __init__(self, message: str, near: tuple[tuple[str, str], ...]) -> None:
        super().__init__(404, "model_not_found", message)
        self.near = near


HEADINGS = {403: "Not allowed", 404: "Not found", 413: "Too large", 503: "Too busy"}


def guarded(handler: Handler, desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose refusals become pages: a sign-in page where a key would help, else the reason."""
    return partial(_run, handler, desk)


def viewer_of(desk: Desk, seen: Visit) -> Viewer:
    """Who looks, in the words of the templates."""
    return Viewer(
        name=seen.caller.name,
        csrf=seen.session.csrf_token,
        may_operate=seen.caller.role == "operate",
        may_sign_out=not is_open(desk.services),
    )


def shell_of(desk: Desk, request: Request, title: str, section: Section, live_url: str = "") -> Shell:
    """The frame of a page. `live_url` is dropped when the scripts that would use it are not there."""
    return Shell(
        title=title,
        section=section,
        version=desk.services.version,
        banner=banner_of(desk.services.current),
        notice=notice_of(_done(desk, request)),
        page_url=page_address(request),
        live_url=live_url if desk.assets.scripts else "",
    )


def page_answer(
    desk: Desk, request: Request, seen: Visit, template: str, page: object, status: int = 200
) -> Response:
    """The page, or the block of it that htmx asked for."""
    blocks = {name.replace("_", "-"): name for name in desk.templates.blocks(template)}
    block = wanted_block(request.headers, blocks)
    html = desk.templates.page(template, page, viewer_of(desk, seen), blocks[block] if block else None)
    response = HTMLResponse(html, status, headers={"vary": VARY})
    _keep_session(desk, request, response, seen)
    return response


def own_path(text: str, default: str = "/") -> str:
    """A path of this server from a form or an address, `default` for anything that might lead elsewhere."""
    if not text.startswith("/") or text.startswith("//") or any(c in text for c in "\\\r\n\t\0"):
        return default
    try:
        parts = urlsplit(text)
    except ValueError:
        return default
    return text if not parts.scheme and not parts.netloc else default


def page_address(request: Request) -> str:
    """Path and query of a request as the browser spelled them."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    query = urlencode([(k, v) for k, v in request.query_params.multi_items() if k != "done"])
    return own_path(f"{path}?{query}" if query else path)


def page_before(request: Request) -> str:
    """The page of ours that a form was sent from, as the browser says; else the first one."""
    try:
        parts = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return "/"
    if not parts.netloc or parts.netloc != request.headers.get("host"):
        return "/"
    return own_path(f"{parts.path}?{parts.query}" if parts.query else parts.path)


def see_other(path: str) -> Response:
    """Lead the browser to a page of ours after an action."""
    return RedirectResponse(path, SEE_OTHER)


def confirmed(path: str, event_id: int) -> Response:
    """Back to a page of ours, which confirms the command that this event is of."""
    address, mark, fragment = path.partition("#")
    joint = "&" if "?" in address else "?"
    return see_other(f"{address}{joint}{urlencode({'done': event_id})}{mark}{fragment}")


def operator_of(desk: Desk, request: Request, refusal: str) -> Visit:
    """Who looks, who must be allowed to operate. Raises ApiError 401, or 403 with the words of `refusal`."""
    seen = visit(request, desk.services)
    if seen.caller.role != "operate":
        raise ApiError(403, "role_not_allowed", refusal)
    return seen


def error_answer(desk: Desk, request: Request, error: ApiError) -> Response:
    """A refusal as a page with its status, or as the notice that htmx puts into the page at hand."""
    try:
        seen = visit(request, desk.services)
    except ApiError:
        seen = None
    viewer = viewer_of(desk, seen) if seen is not None else NOBODY
    heading = HEADINGS.get(error.status, "That did not work")
    near = error.near if isinstance(error, NotFound) else ()
    shell = Shell(
        title=heading,
        section="none",
        version=desk.services.version,
        banner=banner_of(desk.services.current) if viewer.signed_in else None,
        notice=Notice("bad", error.message),
        page_url="/",
    )
    page = ErrorPage(shell, error.status, heading, error.message, near)
    is_notice = wants_part(request.headers)
    html = desk.templates.page("error.html", page, viewer, "notice" if is_notice else None)
    headers = {"vary": VARY, **(AS_NOTICE if is_notice else {}), **error.headers}
    response = HTMLResponse(html, error.status, headers=headers)
    _keep_session(desk, request, response, seen)
    return response


def _keep_session(desk: Desk, request: Request, response: Response, seen: Visit | None) -> None:
    if seen is not None and seen.new_cookie is not None:
        set_session_cookie(response, request, desk.services, seen.new_cookie)


async def _run(handler: Handler, desk: Desk, request: Request) -> Response:
    try:
        require_host(request, desk.services)
        return await handler(desk, request)
    except ClientDisconnect:
        return Response(status_code=CLIENT_CLOSED)
    except ApiError as error:
        if error.status != 401:
            return error_answer(desk, request, error)
        if EVENT_STREAM in request.headers.get("accept", ""):
            return PlainTextResponse("Sign in again.\n", 401)
        # What a form would have done is not done after signing in; its page is shown again.
        back = page_address(request) if request.method in ("GET", "HEAD") else page_before(request)
        sign_in = f"{SIGN_IN}?{urlencode({'next': back})}"
        if is_htmx(request.headers):
            return Response(status_code=401, headers={"hx-redirect": sign_in, "vary": VARY})
        return see_other(sign_in)


def _done(desk: Desk, request: Request) -> Event | None:
    """The command that this page confirms: a number cannot be made to say anything else."""
    text = request.query_params.get("done", "")
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_LIMIT:
        return None
    number = int(text)
    found = desk.services.events.recent(kind="command", since=number - 1, before=number + 1, limit=1)
    return next(iter(found), None)
