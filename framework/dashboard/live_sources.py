"""What a live stream shows: for each page, the same values and parts that the page was rendered from."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request

from framework.api.auth import visit
from framework.api.errors import ApiError
from framework.dashboard.answers import shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.live_address import banner_now, tag_now
from framework.dashboard.live_requests import request_source, requests_source
from framework.dashboard.live_source import LiveSource, no_log
from framework.dashboard.pages.events import events_fragments, parse_query
from framework.dashboard.pages.log import log_fragment
from framework.dashboard.pages.model import body_fragment, gone_fragment
from framework.dashboard.pages.overview import overview_fragments
from framework.dashboard.pages.pools import pools_fragments
from framework.dashboard.pages.pools_past import past_fragments
from framework.dashboard.pages.speculation import speculation_fragments
from framework.dashboard.pools_past_view import PoolsPastView, TimelineView
from framework.dashboard.tryout.views import choose, lane_fragments, views_now
from framework.dashboard.updates import Fragment
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
from framework.runtime.logs import LogBuffer
from framework.values.instance import ModelView


async def source_of(desk: Desk, request: Request) -> LiveSource:
    """The source of the page that an address names. Raises ApiError 404 for a page that has no stream."""
    page = request.query_params.get("page", "")
    reading = {"events": _events, "requests": requests_source, "request": request_source}
    if page in reading:
        return await reading[page](desk, request)
    sources = {
        "overview": _overview,
        "pools": _pools,
        "speculation": _speculation,
        "manifest": _manifest,
        "model": _model,
        "try": _try,
    }
    make = sources.get(page)
    if make is None:
        raise ApiError(404, "not_found", "This page has no live updates.")
    return make(desk, request)


def _overview(desk: Desk, request: Request) -> LiveSource:
    group = parse_group(request.query_params)

    def fragments() -> tuple[Fragment, ...]:
        page = overview_now(desk, shell_of(desk, request, "", "overview"), group)
        return (banner_now(desk), *overview_fragments(page))

    return LiveSource(
        fragments, desk.services.fleet.views, no_log, partial(tag_now, desk), ("overview", group)
    )


def _pools(desk: Desk, request: Request) -> LiveSource:
    past = PoolsPastView(desk)

    def fragments() -> tuple[Fragment, ...]:
        return (banner_now(desk), *pools_fragments(pools_now(desk)), *past_fragments(past.now()))

    return LiveSource(fragments, desk.services.fleet.views, no_log, partial(tag_now, desk), "pools")


def _speculation(desk: Desk, request: Request) -> LiveSource:
    def fragments() -> tuple[Fragment, ...]:
        return (banner_now(desk), *speculation_fragments(speculation_now(desk)))

    return LiveSource(fragments, desk.services.fleet.views, no_log, partial(tag_now, desk), "speculation")


def _manifest(desk: Desk, request: Request) -> LiveSource:
    """Only the banner: nobody wants a text to change under the hands."""
    views = desk.services.fleet.views
    return LiveSource(lambda: (banner_now(desk),), views, no_log, partial(tag_now, desk), "manifest")


async def _events(desk: Desk, request: Request) -> LiveSource:
    query = parse_query(request.query_params)
    stored = await stored_events(desk, query)

    def fragments() -> tuple[Fragment, ...]:
        page = events_now(desk, shell_of(desk, request, "", "events"), query, stored)
        return (banner_now(desk), *events_fragments(page))

    return LiveSource(fragments, desk.services.fleet.views, no_log, partial(tag_now, desk), ("events", query))


def _model(desk: Desk, request: Request) -> LiveSource:
    model_id = request.query_params.get("model", "")
    query = parse_log_query(request.query_params)
    fleet, loaded = desk.services.fleet, TimelineView(desk, model_id)

    def fragments() -> tuple[Fragment, ...]:
        view = fleet.view(model_id)
        if view is None:
            return (banner_now(desk), gone_fragment(model_id))
        log = log_now(desk, model_id, query, view.request.live.replicas)
        return (banner_now(desk), body_fragment(body_now(desk, view, loaded.now())), log_fragment(log))

    def models() -> tuple[ModelView, ...]:
        view = fleet.view(model_id)
        return () if view is None else (view,)

    def log() -> LogBuffer | None:
        return fleet.log(model_id, query.replica)

    return LiveSource(fragments, models, log, lambda: tag_now(desk, log()), ("model", model_id, query))


def _try(desk: Desk, request: Request) -> LiveSource:
    services = desk.services
    chosen = choose(services, visit(request, services).caller.key, request.query_params)

    def fragments() -> tuple[Fragment, ...]:
        return (banner_now(desk), *lane_fragments(services, chosen))

    names = tuple(view.request.id for view in chosen.views)
    return LiveSource(
        fragments, lambda: views_now(services, chosen), no_log, partial(tag_now, desk), ("try", names)
    )
