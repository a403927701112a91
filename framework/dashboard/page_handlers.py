"""The pages as plain functions: a request in, a page or a part of it out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import visit
from framework.dashboard.actions import known_model
from framework.dashboard.answers import page_answer, see_other, shell_of
from framework.dashboard.checked_query import check_events, check_log, check_overview
from framework.dashboard.desk import Desk
from framework.dashboard.live_address import live_url, tag_now
from framework.dashboard.pages.events import parse_query
from framework.dashboard.pages.model import ModelPage
from framework.dashboard.pages.pools import PoolsPage
from framework.dashboard.pages.speculation import SpeculationPage
from framework.dashboard.pools_past_view import PoolsPastView, TimelineView
from framework.dashboard.urls import model_url
from framework.dashboard.views import (
    body_now,
    events_now,
    log_now,
    overview_now,
    parse_group,
    parse_log_query,
    pools_now,
    speculation_now,
    stored_events,
)


async def overview(desk: Desk, request: Request) -> Response:
    """What is running, loading, waiting, failed, and why."""
    seen = visit(request, desk.services)
    check_overview(request)
    group = parse_group(request.query_params)
    stream = live_url("overview", tag_now(desk), state=group or "")
    shell = shell_of(desk, request, "Overview", "overview", stream)
    return page_answer(desk, request, seen, "overview.html", overview_now(desk, shell, group, fresh=True))


async def pools(desk: Desk, request: Request) -> Response:
    """What each device holds, who leaves next, who waits and for what."""
    seen = visit(request, desk.services)
    shell = shell_of(desk, request, "Pools", "pools", live_url("pools", tag_now(desk)))
    page = PoolsPage(shell, pools_now(desk, fresh=True), PoolsPastView(desk).now())
    return page_answer(desk, request, seen, "pools.html", page)


async def speculation(desk: Desk, request: Request) -> Response:
    """What drafts in each model, why not what was asked, and whether it is worth it."""
    seen = visit(request, desk.services)
    stream = live_url("speculation", tag_now(desk))
    shell = shell_of(desk, request, "Speculation", "speculation", stream)
    return page_answer(desk, request, seen, "speculation.html", SpeculationPage(shell, speculation_now(desk)))


async def model(desk: Desk, request: Request) -> Response:
    """One model. An alias leads to the page of its model."""
    seen = visit(request, desk.services)
    view = known_model(desk.services, request)
    name = view.request.id
    if name != request.path_params["name"]:
        return see_other(model_url(name))
    check_log(request, desk.services, view)
    query = parse_log_query(request.query_params)
    tag = tag_now(desk, desk.services.fleet.log(name, query.replica))
    stream = live_url("model", tag, model=name, q=query.text, replica=query.replica or "")
    shell = shell_of(desk, request, name, "model", stream)
    log = log_now(desk, name, query, view.request.live.replicas)
    page = ModelPage(shell, body_now(desk, view, TimelineView(desk, name).now()), log)
    return page_answer(desk, request, seen, "model.html", page)


async def events(desk: Desk, request: Request) -> Response:
    """What happened, newest first. Only the newest page grows."""
    seen = visit(request, desk.services)
    check_events(request)
    query = parse_query(request.query_params)
    stream = live_url("events", tag_now(desk), model=query.model, kind=query.kind, since=query.since or "")
    shell = shell_of(desk, request, "Events", "events", stream if query.live else "")
    page = events_now(desk, shell, query, await stored_events(desk, query))
    return page_answer(desk, request, seen, "events.html", page)
