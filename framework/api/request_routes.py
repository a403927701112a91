"""`/requests`: what clients asked for, now and before (13 §8, §9). For operators, since it may hold texts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import describes
from framework.api.endpoint import Json
from framework.api.errors import ApiError
from framework.api.inputs import json_object, only_fields, only_parameters, whole_number
from framework.api.services import Services
from framework.api.shapes import kept_request_json, running_request_json
from framework.proxy.model_choice import shown

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
MAX_SEQ = 2**53
REQUEST_QUERY = ("model", "key", "before", "limit")


@describes("Requests")
async def list_requests(request: Request, services: Services, _caller: Caller) -> Response:
    """Those that are served now, and the newest ones of the log that pass the filter, oldest first."""
    name = request.query_params.get("model") or None
    # A model that is gone may have left requests, and one that never was has none.
    model = None if name is None else services.fleet.resolve(name) or name
    key = request.query_params.get("key") or None
    kept = await services.request_log.recent(
        model=model,
        key=key,
        before=whole_number(request, "before", default=MAX_SEQ, low=0, high=MAX_SEQ),
        limit=whole_number(request, "limit", default=DEFAULT_LIMIT, low=1, high=MAX_LIMIT),
    )
    running = [view for view in services.requests.views() if _passes(view.model, model, view.key, key)]
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
        raise _not_found(request_id)
    return Json(kept_request_json(kept))


@describes("Cancelled", body="NoFields")
async def cancel_request(request: Request, services: Services, _caller: Caller) -> Response:
    """End a running request, whoever sent it (08 §4.5)."""
    only_fields(await json_object(request), ())
    request_id = request.path_params["id"]
    if not services.requests.cancel(request_id):
        raise _not_found(request_id, "running")
    return Json({"id": request_id, "cancelled": True})


def _passes(model: str, wanted_model: str | None, key: str | None, wanted_key: str | None) -> bool:
    return wanted_model in (None, model) and wanted_key in (None, key)


def _not_found(request_id: str, where: str = "running or in the request log") -> ApiError:
    return ApiError(404, "request_not_found", f"No request {shown(request_id)} is {where}.")
