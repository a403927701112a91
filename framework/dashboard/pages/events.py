"""The Events page: every decision, start, failure and command, newest first, filtered and paged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from framework.api.event_kinds import EVENT_FILTERS, EVENT_KINDS
from framework.dashboard.pages.event_rows import EventRow, newest_first
from framework.dashboard.pages.shell import Shell
from framework.dashboard.updates import Feed, Fragment
from framework.dashboard.urls import with_query
from framework.telemetry.events import OUTCOMES
from framework.values.event import Event

PAGE_ROWS = 50
# The newest events that the log keeps for one model; more is never there to be skipped over.
EXPORT_ROWS = 1000
KINDS = EVENT_FILTERS
KIND_NAMES = {OUTCOMES: "all but the steps of starts", **{kind: kind for kind in sorted(EVENT_KINDS)}}
"""Kinds as the page offers them, by what its address has."""
# Numbers of events fit; anything longer is not one of ours.
NUMBER_LIMIT = 15
NAME_LIMIT = 200


@dataclass(frozen=True)
class EventQuery:
    """The filter of a page. `before` shows events older than that number, `since` newer ones; 0: neither."""

    model: str = ""
    kind: str = ""
    before: int = 0
    since: int = 0

    @property
    def live(self) -> bool:
        """Whether new events belong on this page."""
        return self.before == 0

    def url(self, *, before: int = 0) -> str:
        """The page with this filter, from `before` on."""
        return with_query("/events", {"model": self.model, "kind": self.kind, "before": before or ""})


@dataclass(frozen=True)
class EventList:
    """Rows, newest first; `filtered` tells an empty list what to say."""

    rows: tuple[EventRow, ...]
    filtered: bool


@dataclass(frozen=True)
class EventsPage:
    """Everything on `/events`; `older_url` and `newest_url` are empty where there is nothing to go to."""

    shell: Shell
    query: EventQuery
    kinds: Mapping[str, str]
    models: tuple[str, ...]
    events: EventList
    older_url: str
    newest_url: str
    export_url: str


def parse_query(values: Mapping[str, str]) -> EventQuery:
    """The filter of an address. What makes no sense filters nothing."""
    return EventQuery(
        model=values.get("model", "")[:NAME_LIMIT],
        kind=values.get("kind", "") if values.get("kind") in KINDS else "",
        before=_number(values.get("before", "")),
        since=_number(values.get("since", "")),
    )


def list_of(events: Sequence[Event], query: EventQuery) -> EventList:
    """The rows of a page; `events` are what `cut` let through."""
    return EventList(newest_first(events), filtered=bool(query.model or query.kind))


def cut(events: Iterable[Event], query: EventQuery) -> tuple[list[Event], bool]:
    """The newest page of `events` (oldest first) below `before`, and whether older ones remain."""
    found = [event for event in events if not query.before or event.id < query.before]
    return found[-PAGE_ROWS:], len(found) > PAGE_ROWS


def events_page(
    shell: Shell, query: EventQuery, models: Iterable[str], events: Sequence[Event], older: bool
) -> EventsPage:
    """The whole page."""
    return EventsPage(
        shell=shell,
        query=query,
        kinds=KIND_NAMES,
        models=tuple(models),
        events=list_of(events, query),
        older_url=query.url(before=events[0].id) if older and events else "",
        newest_url="" if query.live else query.url(),
        export_url=with_query(
            "/api/v1/events", {"model": query.model, "kind": query.kind, "limit": EXPORT_ROWS}
        ),
    )


def events_fragments(page: EventsPage) -> tuple[Fragment, ...]:
    """The list grows at its top; the filter form is never replaced under the hands of its user."""
    rows = page.events.rows
    feed = Feed("event-rows", "afterbegin", "_event.html", "event", tuple((row.id, row) for row in rows))
    outline = (page.events.filtered, bool(rows))
    return (Fragment("events", "_event_list.html", "events", page.events, outline=outline, feed=feed),)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= NUMBER_LIMIT else 0
