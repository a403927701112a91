"""The pages of requests: the list, one request, and ending one. For operators, as in the API (13 §8)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import CSRF_FIELD, authorise
from framework.api.inputs import whole_number
from framework.api.request_query import read_filter
from framework.api.request_routes import MAX_SEQ, cancel, is_of, no_request
from framework.dashboard.answers import confirmed, operator_of, own_path, page_answer, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.forms import field, read_form
from framework.dashboard.live_address import live_url, tag_now
from framework.dashboard.live_requests import requests_tag
from framework.dashboard.pages.request import RequestPage, ended_body, running_body
from framework.dashboard.pages.requests import PAGE_ROWS, REQUESTS, parse_request_query, requests_page
from framework.telemetry.events import utc_now

FOR_OPERATORS = (
    'Requests name the keys that sent them, and may hold what was asked: only keys with dashboard = "operate"'
    " see them, and yours may only view. Ask for such a key, or look at the charts of each model."
)


async def requests(desk: Desk, request: Request) -> Response:
    """What is served now, and what was served, newest first. Only the newest page grows."""
    seen = operator_of(desk, request, FOR_OPERATORS)
    values, services = request.query_params, desk.services
    wanted = read_filter(values, services, utc_now())
    before = whole_number(request, "before", default=0, low=0, high=MAX_SEQ) if values.get("before") else 0
    query = parse_request_query(values, before)
    kept = await services.request_log.recent(wanted, before=before or None, limit=PAGE_ROWS + 1)
    views = tuple(view for view in services.requests.views() if is_of(view, wanted))
    stream = live_url("requests", requests_tag(desk, kept, views), **query.filters) if query.live else ""
    fault = services.events.storage_fault
    page = requests_page(
        shell_of(desk, request, "Requests", "requests", stream),
        query,
        kept[-PAGE_ROWS:],
        views,
        utc_now(),
        services.request_log.mode,
        models=[view.request.id for view in services.fleet.views()],
        keys=[key.name for key in services.current.manifest.access],
        faults=() if fault is None else (fault,),
        older=len(kept) > PAGE_ROWS,
    )
    return page_answer(desk, request, seen, "requests.html", page)


async def one_request(desk: Desk, request: Request) -> Response:
    """One request: as it is while it is served, else as the log has it."""
    seen = operator_of(desk, request, FOR_OPERATORS)
    services, request_id = desk.services, request.path_params["id"]
    view = services.requests.find(request_id)
    stream = ""
    if view is not None:
        body = running_body(view, utc_now())
        stream = live_url("request", tag_now(desk), id=request_id)
    else:
        kept = await services.request_log.find(request_id)
        if kept is None:
            raise no_request(request_id)
        body = ended_body(kept.record, services.request_log.mode)
    shell = shell_of(desk, request, "Request", "requests", stream)
    return page_answer(desk, request, seen, "request.html", RequestPage(shell, body))


async def cancel_one(desk: Desk, request: Request) -> Response:
    """End a running request, then back to where the button was, with a confirmation."""
    form = await read_form(request)
    caller = authorise(request, desk.services, "operate", csrf_token=field(form, CSRF_FIELD) or None)
    event_id = cancel(desk.services, request.path_params["id"], by=caller.name)
    return confirmed(own_path(field(form, "back"), REQUESTS), event_id)
