"""`/events` and `/events/stream`: what happened, and what happens (13 §6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller, authorise
from framework.api.described import EVENT_STREAM, describes
from framework.api.endpoint import Json
from framework.api.event_kinds import EVENT_FILTERS
from framework.api.inputs import one_of, whole_number
from framework.api.lookup import unknown_model
from framework.api.services import Services
from framework.api.shapes import event_json, optional_reason_json
from framework.api.streams import frame, sse
from framework.telemetry.events import is_of_kind
from framework.values.event import Event
from framework.values.json_bytes import json_bytes

DEFAULT_LIMIT = 100
# What the log keeps of one model (07 §14.1); more per answer would only be slower to read.
MAX_LIMIT = 1000
MAX_EVENT_ID = 2**53
STREAM_QUERY = ("model", "kind", "since", "limit")
EVENT_QUERY = (*STREAM_QUERY, "before")


@dataclass(frozen=True)
class EventFilter:
    """Which events a caller wants; None takes all."""

    model: str | None
    kind: str | None

    def takes(self, event: Event) -> bool:
        """Whether an event passes."""
        return self.model in (None, event.model) and is_of_kind(event, self.kind)


@describes("Events")
async def list_events(request: Request, services: Services, _caller: Caller) -> Response:
    """The newest events that pass the filter, oldest first, and why older ones may be missing."""
    wanted = await _filter(request, services)
    since = whole_number(request, "since", default=0, low=0, high=MAX_EVENT_ID)
    before = whole_number(request, "before", default=MAX_EVENT_ID, low=0, high=MAX_EVENT_ID)
    limit = whole_number(request, "limit", default=DEFAULT_LIMIT, low=1, high=MAX_LIMIT)
    found = await services.events.recall(
        model=wanted.model, kind=wanted.kind, since=since, before=before, limit=limit
    )
    fault = services.events.storage_fault
    return Json(
        {"events": [event_json(event) for event in found], "storage_fault": optional_reason_json(fault)}
    )


@describes(media_types=(EVENT_STREAM,))
async def stream_events(request: Request, services: Services, _caller: Caller) -> Response:
    """New events as SSE. `Last-Event-ID` or `since` first repeats what came after that event."""
    wanted = await _filter(request, services)
    limit = whole_number(request, "limit", default=MAX_LIMIT, low=1, high=MAX_LIMIT)
    since = _resume_point(request)
    frames = _frames(services, wanted, since, limit)
    return sse(frames, lambda: authorise(request, services, "view"))


async def _frames(
    services: Services, wanted: EventFilter, since: int | None, limit: int
) -> AsyncIterator[str]:
    log = services.events
    async with log.subscribe() as upcoming:
        # An id above all that were given is of a log that somebody deleted: the reader begins anew.
        sent = since if since is not None and since <= log.newest_id else 0
        if since is not None:
            missed = await log.recall(model=wanted.model, kind=wanted.kind, since=sent, limit=limit)
            for event in missed:
                sent = event.id
                yield _frame(event)
        async for event in upcoming:
            if event.id > sent and wanted.takes(event):
                yield _frame(event)


def _frame(event: Event) -> str:
    return frame(json_bytes(event_json(event)).decode(), event.id)


def _resume_point(request: Request) -> int | None:
    """The last event the caller has. A browser that reconnects says it in a header, which wins."""
    header = request.headers.get("last-event-id", "")
    if header.isascii() and header.isdecimal() and len(header) <= len(str(MAX_EVENT_ID)):
        return int(header)
    if "since" not in request.query_params:
        return None
    return whole_number(request, "since", default=0, low=0, high=MAX_EVENT_ID)


async def _filter(request: Request, services: Services) -> EventFilter:
    kind = request.query_params.get("kind") or None
    if kind is not None:
        one_of("kind", kind, EVENT_FILTERS)
    name = request.query_params.get("model") or None
    return EventFilter(None if name is None else await _model_id(name, services), kind)


async def _model_id(name: str, services: Services) -> str:
    """The id of a declared model, or a removed one's that still has events."""
    model_id = services.fleet.resolve(name)
    if model_id is not None:
        return model_id
    if await services.events.recall(model=name, limit=1):
        return name
    raise unknown_model(name, services)
