"""The routes of the dashboard. Called by app; every answer carries the security headers."""

from __future__ import annotations

from pathlib import Path

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from framework.api.names import ANY
from framework.api.services import Services
from framework.dashboard import (
    actions,
    file_pages,
    manifest_pages,
    page_handlers,
    reason_handlers,
    request_pages,
    session_pages,
)
from framework.dashboard.answers import SIGN_IN, Handler, guarded
from framework.dashboard.compression import CompressedPages
from framework.dashboard.desk import Desk, make_desk
from framework.dashboard.headers import SecurityHeaders
from framework.dashboard.live import live
from framework.dashboard.live_address import LIVE
from framework.dashboard.pages.manifest import MANIFEST
from framework.dashboard.pages.pools import POOLS
from framework.dashboard.pages.requests import REQUESTS
from framework.dashboard.pages.speculation import SPECULATION
from framework.dashboard.tryout import handlers
from framework.dashboard.tryout.page import TRY
from framework.dashboard.tryout.relay import PREFIX
from framework.dashboard.tryout.settings import PATHS

SECURED = (Middleware(SecurityHeaders),)
PAGE = (*SECURED, Middleware(CompressedPages))


def dashboard_routes(services: Services, templates_dir: Path, static_dir: Path) -> list[BaseRoute]:
    """All pages, actions and assets. REQUIRES: called on the event loop that serves them."""
    desk = make_desk(services, templates_dir, static_dir)
    return [
        _get(desk, "/", page_handlers.overview),
        _get(desk, POOLS, page_handlers.pools),
        _get(desk, SPECULATION, page_handlers.speculation),
        _get(desk, "/events", page_handlers.events),
        _get(desk, "/files", file_pages.files),
        _get(desk, "/files/{id}", file_pages.file),
        _get(desk, "/reasons", reason_handlers.reasons),
        _get(desk, f"/reasons/{{code:{ANY}}}", reason_handlers.reason),
        _get(desk, TRY, handlers.show),
        _post(desk, TRY, handlers.submit),
        *(_post(desk, PREFIX + path, handlers.relay) for path in PATHS.values()),
        _get(desk, MANIFEST, manifest_pages.manifest),
        _post(desk, f"{MANIFEST}/check", manifest_pages.check),
        _post(desk, f"{MANIFEST}/preview", manifest_pages.preview),
        _post(desk, f"{MANIFEST}/apply", manifest_pages.apply),
        _post(desk, f"{MANIFEST}/revert", manifest_pages.revert),
        _get(desk, f"{MANIFEST}/history/{{id}}", manifest_pages.version),
        _get(desk, f"{MANIFEST}/remedies", manifest_pages.remedies),
        _post(desk, f"{MANIFEST}/remedy", manifest_pages.remedy),
        _get(desk, REQUESTS, request_pages.requests),
        _get(desk, f"{REQUESTS}/{{id}}", request_pages.one_request),
        _post(desk, f"{REQUESTS}/{{id}}/cancel", request_pages.cancel_one),
        _get(desk, LIVE, live),
        _get(desk, SIGN_IN, session_pages.show_sign_in),
        _post(desk, SIGN_IN, session_pages.do_sign_in),
        _post(desk, "/sign-out", session_pages.do_sign_out),
        # Names may hold slashes: the verb is what stands last, and pages are only read.
        _post(desk, f"/models/{{name:{ANY}}}/load", actions.load),
        _post(desk, f"/models/{{name:{ANY}}}/unload", actions.unload),
        _post(desk, f"/models/{{name:{ANY}}}/reload", actions.reload),
        _get(desk, f"/models/{{name:{ANY}}}", page_handlers.model),
        Route("/static/{name:path}", desk.assets.answer, methods=["GET"], middleware=SECURED),
    ]


def _get(desk: Desk, path: str, handler: Handler) -> Route:
    return Route(path, guarded(handler, desk), methods=["GET"], middleware=PAGE)


def _post(desk: Desk, path: str, handler: Handler) -> Route:
    return Route(path, guarded(handler, desk), methods=["POST"], middleware=SECURED)
