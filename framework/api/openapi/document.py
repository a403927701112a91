"""The whole description, and the handler that answers with it (13 §8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import describes, description_of
from framework.api.endpoint import Endpoint, Json
from framework.api.model_routes import MODEL_OPERATIONS, MODELS_PREFIX
from framework.api.openapi.operation import Operation, paths_object
from framework.api.openapi.parameters import QUERY
from framework.api.openapi.public import public_operations
from framework.api.openapi.schemas import SCHEMAS, ref
from framework.api.services import Services

OF_MANAGER = "manager"
TITLE = "Paddock"
KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}


def document(endpoints: Mapping[str, Endpoint], version: str) -> dict[str, Any]:
    """The description in the form of OpenAPI 3.1; `endpoints` by their whole path."""
    operations = (*public_operations(), *api_operations(endpoints))
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version, "license": {"name": "MIT", "identifier": "MIT"}},
        "security": [{name: []} for name in KEYS],
        "paths": paths_object(operations),
        "components": {"schemas": dict(SCHEMAS), "securitySchemes": KEYS},
    }


def api_operations(endpoints: Mapping[str, Endpoint]) -> Iterator[Operation]:
    """What the routes of `/api/v1` declare. A path that takes anything is described by what stands behind
    it."""
    for suffix, method, told, asks in MODEL_OPERATIONS:
        body = None if told.body is None else ref(told.body)
        query = {name: QUERY[name] for name in asks}
        yield Operation(f"{MODELS_PREFIX}{{name}}{suffix}", method, OF_MANAGER, told, query, body)
    for path, endpoint in endpoints.items():
        if ":" in path:
            continue
        for method, handler in endpoint.handlers.items():
            told = description_of(handler)
            body = None if told.body is None else ref(told.body)
            query = {name: QUERY[name] for name in endpoint.query}
            yield Operation(path, method, OF_MANAGER, told, query, body)


def openapi_endpoint(services: Services, endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """The route that answers with the description of `endpoints`."""

    @cache
    def described() -> dict[str, Any]:
        return document(endpoints, services.version)

    @describes()
    async def read_openapi(_request: Request, _services: Services, _caller: Caller) -> Response:
        """The description of all routes, in the form of OpenAPI 3.1."""
        return Json(described())

    return Endpoint(services, {"GET": read_openapi})
