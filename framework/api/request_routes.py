"""`/requests`: what clients asked for, now and before (13 §8, §9). For operators, since it may hold texts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import JSON, describes
from framework.api.endpoint import PRIVATE, Json
from framework.api.errors import ApiError
from framework.api.inputs import json_object, one_of, only_fields, only_parameters, whole_number
from framework.api.request_export import requests_csv
from framework.api.request_query import read_filter
from framework.api.services import Services
from framework.api.shapes import kept_request_json, running_request_json
from framework.proxy.model_choice import shown
from framework.proxy.records import RequestView
from framework.telemetry.events import utc_now
from framework.telemetry.request_log import RequestFilter

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
MAX_SEQ = 2**53
REQUEST_QUERY = ("model", "key", "status", "last_s", "took_s", "before", "limit", "format")
CSV = "text/csv"
FORMATS = ("json", "csv")
AS_FILE = {"Content-Disposition": 'attachment; filename="requests.csv"'}


@describes("Requests", media_types=(JSON, CSV))
async def list_requests(request: Request, services: Services, _caller: Caller) -> Response:
    """Those that are served now, and the newest ones of the log that pass the filter, oldest first."""
    wanted = read_filter(request.query_params, services, utc_now())
    form = one_of("format", request.query_params.get("format") or FORMATS[0], FORMATS)
    kept = await services.request_log.recent(
        wanted,
        before=whole_number(request, "before", default=MAX_SEQ, low=0, high=MAX_SEQ),
        limit=whole_number(request, "limit", default=DEFAULT_LIMIT, low=1, high=MAX_LIMIT),
    )
    if form == "csv":
        return Response(requests_csv(kept), media_type=CSV, headers={**PRIVATE, **AS_FILE})
    running = [view for view in services.requests.views() if is_of(view, wanted)]
    return Json(
        {
            "request_log": services.request_log.mode,
            "running": [running_request_json(view) for view in running],
            "requests": [kept_request_json(one) for one in kept],
        }
    )


@describes("Request")
async def read_request(request: Request, services: Services, _caller: Caller) -> Response:
    """One request: as it is while it is served, else as the log has it, with its texts."""
    only_parameters(request, ())
    request_id = request.path_params["id"]
    view = services.requests.find(request_id)
    if view is not None:
        return Json(running_request_json(view))
    kept = await services.request_log.find(request_id)
    if kept is None:
        raise no_request(request_id)
    return Json(kept_request_json(kept))


@describes("Cancelled", body="NoFields")
async def cancel_request(request: Request, services: Services, caller: Caller) -> Response:
    """End a running request, whoever sent it (08 §4.5)."""
    only_fields(await json_object(request), ())
    request_id = request.path_params["id"]
    event_id = cancel(services, request_id, by=caller.name)
    return Json({"id": request_id, "cancelled": True, "event_id": event_id})


def cancel(services: Services, request_id: str, *, by: str) -> int:
    """End a running request; the id of the event that says so. Raises ApiError 404."""
    view = services.requests.find(request_id)
    if view is None or not services.requests.cancel(request_id):
        raise no_request(request_id, "running")
    event = services.events.record(
        "command",
        f"cancel of request {request_id} accepted",
        # Not a text of a client: the log keeps events by model.
        model=view.model if services.fleet.view(view.model) is not None else None,
        replica=view.replica,
        data={"command": "cancel", "request": request_id, "by": by},
    )
    return event.id


def is_of(view: RequestView, wanted: RequestFilter) -> bool:
    """Whether a running request is of the model and the key of a filter."""
    return wanted.model in (None, view.model) and wanted.key in (None, view.key)


def no_request(request_id: str, where: str = "running or in the request log") -> ApiError:
    """404: there is none with this id."""
    return ApiError(404, "request_not_found", f"No request {shown(request_id)} is {where}.")
