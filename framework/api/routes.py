"""All routes of `/api/v1` (13 §8), and `/metrics`. Called by `app`; decides only which path is what."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from framework.api.auth import Caller
from framework.api.described import describes
from framework.api.endpoint import Endpoint, Json
from framework.api.event_routes import EVENT_QUERY, STREAM_QUERY, list_events, stream_events
from framework.api.file_routes import inspect_listed, list_files
from framework.api.inspect_query import INSPECT_QUERY
from framework.api.manifest_routes import manifest_endpoints
from framework.api.metrics.page import PATH as METRICS_PATH
from framework.api.metrics.page import read_metrics
from framework.api.model_routes import LOG_QUERY, command_model, read_model
from framework.api.names import ANY
from framework.api.openapi.document import openapi_endpoint
from framework.api.reason_routes import list_reasons
from framework.api.request_routes import REQUEST_QUERY, cancel_request, list_requests, read_request
from framework.api.services import Services
from framework.api.shapes import (
    device_histories_json,
    devices_json,
    doctor_json,
    engines_json,
    plan_json,
    status_json,
)

PREFIX = "/api/v1"
OPENAPI_PATH = "/openapi.json"


def api_routes(services: Services) -> list[BaseRoute]:
    """The routes, in matching order, and `/metrics`; any other path below the prefix is answered as well."""
    endpoints = _endpoints(services)
    described = {PREFIX + path: endpoint for path, endpoint in endpoints.items() if endpoint.handlers}
    described[METRICS_PATH] = Endpoint(services, {"GET": read_metrics})
    description = openapi_endpoint(services, described)
    described[OPENAPI_PATH] = described[PREFIX + OPENAPI_PATH] = description
    unknown = {path: Endpoint(services, {}) for path in (PREFIX, f"{PREFIX}/{{rest:{ANY}}}")}
    return [Route(path, endpoint) for path, endpoint in {**described, **unknown}.items()]


def _endpoints(services: Services) -> dict[str, Endpoint]:
    return {
        "/status": Endpoint(services, {"GET": _status}),
        "/plan": Endpoint(services, {"GET": _plan}),
        "/events": Endpoint(services, {"GET": list_events}, EVENT_QUERY),
        "/events/stream": Endpoint(services, {"GET": stream_events}, STREAM_QUERY),
        "/requests": Endpoint(services, {"GET": list_requests}, REQUEST_QUERY, to_look="operate"),
        "/requests/{id}": Endpoint(services, {"GET": read_request}, to_look="operate"),
        "/requests/{id}/cancel": Endpoint(services, {"POST": cancel_request}),
        f"/models/{{rest:{ANY}}}": Endpoint(services, {"GET": read_model, "POST": command_model}, LOG_QUERY),
        "/files": Endpoint(services, {"GET": list_files}),
        "/files/{id}/inspect": Endpoint(services, {"GET": inspect_listed}, INSPECT_QUERY),
        "/reasons": Endpoint(services, {"GET": list_reasons}),
        **manifest_endpoints(services),
        "/engines": Endpoint(services, {"GET": _engines}),
        "/devices": Endpoint(services, {"GET": _devices}),
        "/doctor": Endpoint(services, {"GET": _doctor}),
        "/history": Endpoint(services, {"GET": _history}),
    }


@describes("Status")
async def _status(_request: Request, services: Services, _caller: Caller) -> Response:
    """What runs now."""
    return Json(current_status(services))


def current_status(services: Services) -> dict[str, Any]:
    """The status of 13 §5 as it is now."""
    return status_json(
        services.version,
        services.started_at,
        services.current,
        services.fleet.views(),
        services.fleet.pools(),
        services.known_devices().sampled_at,
    )


@describes("Plan")
async def _plan(_request: Request, services: Services, _caller: Caller) -> Response:
    """The plan of every declared replica."""
    return Json(plan_json(await services.plan()))


@describes("Engines")
async def _engines(_request: Request, services: Services, _caller: Caller) -> Response:
    """The engines that were found."""
    return Json(engines_json(await services.engines()))


@describes("Devices")
async def _devices(_request: Request, services: Services, _caller: Caller) -> Response:
    """The memories that engines see, listed now."""
    return Json(devices_json(await services.devices()))


@describes("Doctor")
async def _doctor(_request: Request, services: Services, _caller: Caller) -> Response:
    """What is wrong here."""
    return Json(doctor_json(await services.doctor()))


@describes("DeviceHistories")
async def _history(_request: Request, services: Services, _caller: Caller) -> Response:
    """What devices held in the last hour, by minutes."""
    return Json(device_histories_json(services.history.devices()))
