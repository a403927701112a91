"""The page values of this moment: takes snapshots of the running system, decides nothing.

Each page has one function, used for the page itself and for each update of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from framework.api.services import Services
from framework.dashboard.charts.timeline import Timeline
from framework.dashboard.desk import Desk
from framework.dashboard.pages.device_list import device_list_of
from framework.dashboard.pages.event_rows import RecentEvents, newest_first
from framework.dashboard.pages.events import PAGE_ROWS, EventQuery, EventsPage, cut, events_page
from framework.dashboard.pages.log import QUERY_LIMIT, LogQuery, LogView, log_view
from framework.dashboard.pages.model import ModelBody, body_of
from framework.dashboard.pages.overview import GROUPS, OverviewPage, summary_of, table_of
from framework.dashboard.pages.pools import PoolSections, pool_sections
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.speculation import SpecSections, spec_sections
from framework.dashboard.states import Group
from framework.dashboard.urls import with_query
from framework.runtime.held_memory import device_bytes_of
from framework.telemetry.events import OUTCOMES, newest
from framework.values.event import Event
from framework.values.instance import ModelView, State

RECENT_ROWS = 10

REPLICA_DIGITS = 4
RUNNING = frozenset({State.READY, State.DRAINING})


class EventFilter(TypedDict):
    """What of the event log is wanted, as its methods take it."""

    model: str | None
    kind: str | None
    since: int
    before: int | None
    limit: int


def overview_now(desk: Desk, shell: Shell, group: Group | None, *, fresh: bool = False) -> OverviewPage:
    """The overview; `fresh` asks for a new list of devices."""
    views = desk.services.fleet.views()
    current = desk.services.current
    return OverviewPage(
        shell=shell,
        summary=summary_of(views, group, current),
        table=table_of(views, group, current.manifest.path.name),
        devices=device_list_of(
            desk.devices.look(running_instances(views), fresh=fresh), desk.services.fleet.pools()
        ),
        recent=recent_events(desk.services, None),
    )


def pools_now(desk: Desk, *, fresh: bool = False) -> PoolSections:
    """Pools, their devices and who is on them; `fresh` asks for a new list of devices."""
    fleet = desk.services.fleet
    views = fleet.views()
    return pool_sections(fleet.pools(), views, desk.devices.look(running_instances(views), fresh=fresh))


def speculation_now(desk: Desk) -> SpecSections:
    """What drafts in every model, and what it brings."""
    return spec_sections(desk.services.fleet.views(), desk.services.history.model)


def body_now(desk: Desk, view: ModelView, loaded: Timeline) -> ModelBody:
    """The page of one model, but for its log; `loaded` says when it was."""
    name = view.request.id
    waiting = (one for pool in desk.services.fleet.pools() for one in pool.waiting if one.model == name)
    devices = desk.devices.look(running_instances((view,))).devices
    held = {i.instance: device_bytes_of(i.pid, devices) for i in view.instances if i.pid is not None}
    history = desk.services.history.model(name)
    recent = recent_events(desk.services, name)
    return body_of(view, recent, loaded, next(waiting, None), held, history)


def log_now(desk: Desk, model_id: str, query: LogQuery, replicas: int) -> LogView:
    """The log of one replica of a model."""
    buffer = desk.services.fleet.log(model_id, query.replica)
    return log_view(model_id, buffer.after(0) if buffer is not None else [], query, replicas)


async def stored_events(desk: Desk, query: EventQuery) -> list[Event]:
    """The events of a page at this moment, those of earlier lives of the manager included."""
    return await desk.services.events.recall(**_event_filter(desk, query))


def events_now(desk: Desk, shell: Shell, query: EventQuery, stored: Sequence[Event]) -> EventsPage:
    """The events that a query lets through: what `stored_events` found, and what has come since."""
    services = desk.services
    asked = _event_filter(desk, query)
    found = newest(asked["limit"], stored, services.events.recent(**asked))
    events, older = cut(found, query)
    names = [view.request.id for view in services.fleet.views()]
    return events_page(shell, query, names, events, older)


def _event_filter(desk: Desk, query: EventQuery) -> EventFilter:
    model = (desk.services.fleet.resolve(query.model) or query.model) if query.model else None
    return EventFilter(
        model=model,
        kind=query.kind or None,
        since=query.since,
        before=query.before or None,
        limit=PAGE_ROWS + 1,
    )


def recent_events(services: Services, model: str | None) -> RecentEvents:
    """The newest events of one model; or of everything, without the steps that each start takes."""
    kind = OUTCOMES if model is None else None
    events = services.events.recent(model=model, kind=kind, limit=RECENT_ROWS)
    url = with_query("/events", {"model": model or "", "kind": kind or ""})
    return RecentEvents(newest_first(events), url, names_models=model is None)


def parse_group(values: Mapping[str, str]) -> Group | None:
    """The filter of the overview; anything else shows all."""
    wanted = values.get("state", "")
    return next((key for key, _, _ in GROUPS if key == wanted), None)


def parse_log_query(values: Mapping[str, str]) -> LogQuery:
    """The search of a log."""
    replica = values.get("replica", "")
    number = int(replica) if replica.isascii() and replica.isdigit() and len(replica) <= REPLICA_DIGITS else 0
    return LogQuery(values.get("q", "").strip()[:QUERY_LIMIT], number)


def running_instances(views: tuple[ModelView, ...]) -> frozenset[str]:
    """The instances that hold memory."""
    return frozenset(i.instance for view in views for i in view.instances if i.state in RUNNING)
