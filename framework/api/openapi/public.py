"""The public routes as operations: from the table of the endpoint, so that a new route is described at
once. Pure.

What a body may hold beyond the model is for the engine to judge, so it is told only as far as every engine
takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framework.api.described import EVENT_STREAM, JSON, Description, summary_of
from framework.api.openapi.operation import Operation
from framework.api.openapi.schemas import Schema, many
from framework.proxy.endpoints import ENDPOINTS, NAMED_ENDPOINTS, SUFFIXES, Endpoint

OF_MODELS = "models"
MODEL: Schema = {
    "type": "string",
    "description": "Id or alias of a model; may be left out where there is one.",
}
STREAM: Schema = {"type": "boolean", "description": "Answer as server-sent events."}
TOKENS: Schema = {"type": "integer", "minimum": 1, "description": "Most tokens to generate."}
MESSAGE: Schema = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["system", "user", "assistant"]}, "content": {"type": "string"}},
}


def _body(*required: str, **fields: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {"model": MODEL, **fields}}


BODIES: Mapping[str, Schema] = {
    "/v1/chat/completions": _body(
        "messages", messages={**many(MESSAGE), "minItems": 1}, stream=STREAM, max_tokens=TOKENS
    ),
    "/v1/completions": _body("prompt", prompt={"type": "string"}, stream=STREAM, max_tokens=TOKENS),
    "/v1/embeddings": _body("input", input={"anyOf": [{"type": "string"}, many({"type": "string"})]}),
}
"""What is known of bodies by route; of any other, that it names a model."""
QUERY: Mapping[str, tuple[Schema, str]] = {
    "model": ({"type": "string"}, "Model, before the one in the body.")
}


def public_operations() -> Iterator[Operation]:
    """Every public route, the ones below `/m/NAME` included."""
    for path, endpoint in {**ENDPOINTS, **NAMED_ENDPOINTS}.items():
        yield _operation(path, endpoint)
    for suffix, endpoint in SUFFIXES.items():
        yield _operation(f"/m/{{name}}{suffix}", endpoint)


def _operation(path: str, endpoint: Endpoint) -> Operation:
    is_generation = endpoint.method == "POST" and path not in NAMED_ENDPOINTS
    body = BODIES.get(endpoint.route, _body()) if is_generation else None
    streams = body is not None and "stream" in body["properties"]
    media_types = (JSON, EVENT_STREAM) if streams else (JSON,)
    return Operation(
        path,
        endpoint.method,
        OF_MODELS,
        Description(summary_of(endpoint.handler), media_types=media_types),
        QUERY if is_generation and "{name}" not in path else {},
        body,
        needs_body=is_generation,
        is_open=endpoint.is_open,
    )
