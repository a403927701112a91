"""Which handler serves which path (08 §2.1). Called by `routes`.

Paths of the OpenAI and Anthropic families exist without `/v1`, too, save `/completions` and `/embeddings`,
which are llama-server's own forms then. All of a model's paths may follow `/m/NAME`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import orjson

from framework.proxy.anthropic_errors import anthropic_envelope
from framework.proxy.engine_completion import completion, infill
from framework.proxy.errors import ErrorForm, ProxyError, envelope
from framework.proxy.exchange import Exchange
from framework.proxy.generate import chat_completions, completions
from framework.proxy.look_routes import lora_adapters, props, slots
from framework.proxy.messages import count_message_tokens, messages
from framework.proxy.model_choice import shown
from framework.proxy.model_list import list_models, show_model
from framework.proxy.responses import count_response_tokens, responses
from framework.proxy.small_routes import (
    apply_template,
    count_chat_tokens,
    detokenize,
    embeddings,
    engine_embeddings,
    rerank,
    tokenize,
)
from framework.proxy.transcription import transcriptions

Handler = Callable[[Exchange], Awaitable[None]]
OK = 200
MODEL_PREFIX = "/m/"
# Clients that add /v1 themselves, as Anthropic's, with a base URL that has it, too.
DOUBLED = "/v1/v1/"
MODELS_PREFIX = "/v1/models/"
REQUESTS_PREFIX = "/v1/requests/"
CANCEL_SUFFIX = "/cancel"
# Answers below these are Anthropic's, also where there is no such route.
ANTHROPIC_PREFIXES = ("/v1/messages", "/messages")
ONLY_DECLARED = "what a model runs with is declared in the manifest"


async def health(exchange: Exchange) -> None:
    """That this server answers; says nothing about models."""
    await exchange.answer.send_json(OK, b'{"status":"ok"}')


async def cancel_request(exchange: Exchange) -> None:
    """End a running request of the same caller (08 §4.5)."""
    requests, request_id = exchange.services.requests, exchange.path_name or ""
    found = requests.find(request_id)
    if found is None or found.key != exchange.request.key:
        raise ProxyError("request_not_found", f"No request {shown(request_id)} is running.")
    requests.cancel(request_id)
    await exchange.answer.send_json(OK, orjson.dumps({"id": request_id, "cancelled": True}))


@dataclass(frozen=True)
class Endpoint:
    """A route with its one method and handler. `is_open` needs no access key."""

    route: str
    method: str
    handler: Handler
    is_open: bool = False
    hint: str = ""
    """Why it takes no other method, where that may surprise."""
    paths: tuple[str, ...] = ()
    """Further paths, each of them the same route."""


SHOW_MODEL = Endpoint("/v1/models/NAME", "GET", show_model)
CANCEL_REQUEST = Endpoint("/v1/requests/ID/cancel", "POST", cancel_request)
HEALTH = Endpoint("/health", "GET", health, is_open=True, paths=("/v1/health",))
LIST_MODELS = Endpoint("/v1/models", "GET", list_models, paths=("/models",))

OF_A_MODEL: tuple[Endpoint, ...] = (
    LIST_MODELS,
    Endpoint("/v1/chat/completions", "POST", chat_completions, paths=("/chat/completions",)),
    Endpoint("/v1/completions", "POST", completions),
    Endpoint("/v1/responses", "POST", responses, paths=("/responses",)),
    Endpoint("/v1/messages", "POST", messages, paths=("/messages",)),
    Endpoint("/v1/embeddings", "POST", embeddings),
    Endpoint("/v1/audio/transcriptions", "POST", transcriptions, paths=("/audio/transcriptions",)),
    Endpoint("/v1/rerank", "POST", rerank, paths=("/rerank", "/reranking", "/v1/reranking")),
    Endpoint("/completion", "POST", completion, paths=("/completions",)),
    Endpoint("/infill", "POST", infill),
    Endpoint("/embeddings", "POST", engine_embeddings, paths=("/embedding",)),
    Endpoint("/tokenize", "POST", tokenize),
    Endpoint("/detokenize", "POST", detokenize),
    Endpoint("/apply-template", "POST", apply_template),
    Endpoint("/v1/messages/count_tokens", "POST", count_message_tokens, paths=("/messages/count_tokens",)),
    Endpoint("/v1/responses/input_tokens", "POST", count_response_tokens, paths=("/responses/input_tokens",)),
    Endpoint(
        "/v1/chat/completions/input_tokens",
        "POST",
        count_chat_tokens,
        paths=("/chat/completions/input_tokens",),
    ),
    Endpoint("/props", "GET", props, hint=ONLY_DECLARED),
    Endpoint("/slots", "GET", slots),
    Endpoint(
        "/lora-adapters",
        "GET",
        lora_adapters,
        hint=f"{ONLY_DECLARED} (models.NAME.adapters); one request may weigh them with its field `lora`",
    ),
)


def _by_path(*endpoints: Endpoint) -> dict[str, Endpoint]:
    return {path: endpoint for endpoint in endpoints for path in (endpoint.route, *endpoint.paths)}


ENDPOINTS: Mapping[str, Endpoint] = _by_path(HEALTH, *OF_A_MODEL)
SUFFIXES: Mapping[str, Endpoint] = dict(
    sorted(_by_path(*OF_A_MODEL).items(), key=lambda item: len(item[0]), reverse=True)
)
"""Paths that may follow `/m/NAME`; of two with one ending the longer stands first."""
NAMED_ENDPOINTS: Mapping[str, Endpoint] = {
    MODELS_PREFIX + "{name}": SHOW_MODEL,
    REQUESTS_PREFIX + "{id}" + CANCEL_SUFFIX: CANCEL_REQUEST,
}
"""Paths with a name in them, as the description of the routes writes them; `find_endpoint` knows them."""
BELOW = ("/v1", "/v1/{rest:path}", "/m/{rest:path}")
PATHS = (*(path for path in ENDPOINTS if not path.startswith("/v1/")), *BELOW)
"""What the application hands to the endpoint."""


def route_names() -> frozenset[str]:
    """The routes as records and metrics name them."""
    return frozenset(endpoint.route for endpoint in (*ENDPOINTS.values(), *NAMED_ENDPOINTS.values()))


def find_endpoint(path: str) -> tuple[Endpoint, str | None]:
    """The endpoint of a path and the model or request that the path names. Raises ProxyError 404."""
    if path in ENDPOINTS:
        return ENDPOINTS[path], None
    if path.startswith(MODELS_PREFIX) and path != MODELS_PREFIX:
        return SHOW_MODEL, path.removeprefix(MODELS_PREFIX)
    if path.startswith(REQUESTS_PREFIX) and path.endswith(CANCEL_SUFFIX):
        return CANCEL_REQUEST, path.removeprefix(REQUESTS_PREFIX).removesuffix(CANCEL_SUFFIX)
    if path.startswith(MODEL_PREFIX):
        suffix = next((one for one in SUFFIXES if path.endswith(one)), "")
        if suffix and len(path) > len(MODEL_PREFIX) + len(suffix):
            return SUFFIXES[suffix], path[len(MODEL_PREFIX) : -len(suffix)]
    doubled = " Leave /v1 out of the client's base URL: the client adds it." if DOUBLED in path else ""
    raise ProxyError("route_not_found", f"There is no route {shown(path)}.{doubled}")


def error_form(path: str) -> ErrorForm:
    """How errors of a path are written."""
    is_anthropic = path.startswith(ANTHROPIC_PREFIXES)
    if path.startswith(MODEL_PREFIX):
        is_anthropic = any(f"{prefix}/" in f"{path}/" for prefix in ANTHROPIC_PREFIXES)
    return anthropic_envelope if is_anthropic else envelope
