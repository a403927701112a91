"""The public routes as operations: from the table of the endpoint, so that a new route is described at
once. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framework.api.described import EVENT_STREAM, FORM, JSON, Description, summary_of
from framework.api.openapi.bodies import ANY_BODY, BODIES, FORMS
from framework.api.openapi.operation import Operation
from framework.api.openapi.schemas import Schema
from framework.proxy.endpoints import ENDPOINTS, NAMED_ENDPOINTS, SUFFIXES, Endpoint

OF_MODELS = "models"
QUERY: Mapping[str, tuple[Schema, str]] = {
    "model": ({"type": "string"}, "Model, before the one in the body.")
}
NO_MODEL = frozenset({"/health", "/v1/models"})
"""Routes that are about none."""


def public_operations() -> Iterator[Operation]:
    """Every public route, the ones below `/m/NAME` included."""
    for path, endpoint in {**ENDPOINTS, **NAMED_ENDPOINTS}.items():
        yield _operation(path, endpoint)
    for suffix, endpoint in SUFFIXES.items():
        yield _operation(f"/m/{{name}}{suffix}", endpoint)


def _operation(path: str, endpoint: Endpoint) -> Operation:
    takes_body = endpoint.method == "POST" and path not in NAMED_ENDPOINTS
    form = FORMS.get(endpoint.route)
    body = (form or BODIES.get(endpoint.route, ANY_BODY)) if takes_body else None
    streams = body is not None and "stream" in body["properties"]
    is_named = "{" in path or endpoint.route in NO_MODEL
    return Operation(
        path,
        endpoint.method,
        OF_MODELS,
        Description(summary_of(endpoint.handler), media_types=(JSON, EVENT_STREAM) if streams else (JSON,)),
        {} if is_named else QUERY,
        body,
        body_type=FORM if form is not None else JSON,
        needs_body=takes_body,
        is_open=endpoint.is_open,
    )
