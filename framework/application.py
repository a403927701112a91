"""The application that the listener serves: every route there is, and what is answered where there is none.

Called by `app`. Tests that look at all routes start here, so that one that is added later is looked at too.
"""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match

from framework.api.routes import api_routes
from framework.api.services import Services
from framework.dashboard.answers import own_path, page_address
from framework.dashboard.headers import DEFAULT_HEADERS, SECURITY_HEADERS
from framework.dashboard.routes import dashboard_routes
from framework.proxy.routes import public_routes
from framework.proxy.services import ProxyServices

TEMPORARY_REDIRECT = 307
SENTENCES = {
    404: "There is nothing at this address. The dashboard is at /, the routes are in /openapi.json.",
    405: "This address takes another method; Allow says which.",
}


def make_application(
    proxy: ProxyServices, services: Services, templates_dir: Path, static_dir: Path
) -> Starlette:
    """Endpoint, API and dashboard. REQUIRES: called on the event loop that serves them."""
    routes = [
        *public_routes(proxy),
        *api_routes(services),
        *dashboard_routes(services, templates_dir, static_dir),
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: _stray, Exception: _fault})
    # Its answer would name the `Host` of the request, and none of our headers.
    application.router.redirect_slashes = False
    return application


async def _stray(request: Request, error: Exception) -> Response:
    """A path or method that no route has; one with a slash too many leads to the page that was meant."""
    if (meant := _without_slash(request)) is not None:
        return _plain(f"This page is at {meant}.", TEMPORARY_REDIRECT, {"location": meant})
    status = error.status_code if isinstance(error, HTTPException) else 500
    given = (error.headers if isinstance(error, HTTPException) else None) or {}
    return _plain(SENTENCES.get(status, "This cannot be answered."), status, dict(given))


def _without_slash(request: Request) -> str | None:
    """The address of a page for one that ends with a slash too many; None where there is no such page."""
    path = request.scope["path"]
    if request.method not in ("GET", "HEAD") or not path.endswith("/"):
        return None
    scope = {**request.scope, "path": path.rstrip("/")}
    if not any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
        return None
    raw, _, query = page_address(request).partition("?")
    meant = f"{raw.rstrip('/')}?{query}" if query else raw.rstrip("/")
    return own_path(meant, "") or None


async def _fault(_request: Request, _error: Exception) -> Response:
    """A fault of ours; its trace is in the log."""
    return _plain("Something went wrong inside the server. Its log has the details.", 500, {})


def _plain(sentence: str, status: int, headers: dict[str, str]) -> Response:
    return PlainTextResponse(f"{sentence}\n", status, {**DEFAULT_HEADERS, **SECURITY_HEADERS, **headers})
