"""The public routes: which handler serves which path, and the one place where requests end (08 §2.1, §26).

A plain ASGI application below Starlette: nothing buffers between a handler and the socket. Unknown paths and
methods below `/v1` and `/m` are answered here too, in the same envelope as everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import orjson
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from framework.proxy.access import authorise
from framework.proxy.client import ClientAnswer
from framework.proxy.cors import answer_headers, preflight_headers
from framework.proxy.embeddings import embeddings
from framework.proxy.errors import CLIENT_CLOSED, ClientGone, ProxyError, internal_error
from framework.proxy.exchange import Exchange, header_values
from framework.proxy.generate import chat_completions, completions
from framework.proxy.model_choice import shown
from framework.proxy.model_list import list_models, show_model
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices

log = logging.getLogger(__name__)

Handler = Callable[[Exchange], Awaitable[None]]
OK = 200
MODEL_PREFIX = "/m/"
MODELS_PREFIX = "/v1/models/"
REQUESTS_PREFIX = "/v1/requests/"
CANCEL_SUFFIX = "/cancel"
PATHS = ("/health", "/models", "/chat/completions", "/v1", "/v1/{rest:path}", "/m/{rest:path}")


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


CHAT = Endpoint("/v1/chat/completions", "POST", chat_completions)
COMPLETIONS = Endpoint("/v1/completions", "POST", completions)
EMBEDDINGS = Endpoint("/v1/embeddings", "POST", embeddings)
LIST_MODELS = Endpoint("/v1/models", "GET", list_models)
SHOW_MODEL = Endpoint("/v1/models/NAME", "GET", show_model)
CANCEL_REQUEST = Endpoint("/v1/requests/ID/cancel", "POST", cancel_request)
HEALTH = Endpoint("/health", "GET", health, is_open=True)

MODEL_ENDPOINTS: Mapping[str, Endpoint] = {
    CHAT.route: CHAT,
    "/chat/completions": CHAT,
    COMPLETIONS.route: COMPLETIONS,
    EMBEDDINGS.route: EMBEDDINGS,
}
"""Paths that may follow `/m/NAME`; of two with one ending the longer stands first."""
ENDPOINTS: Mapping[str, Endpoint] = {
    **MODEL_ENDPOINTS,
    HEALTH.route: HEALTH,
    LIST_MODELS.route: LIST_MODELS,
    "/models": LIST_MODELS,
}


NAMED_ENDPOINTS: Mapping[str, Endpoint] = {
    MODELS_PREFIX + "{name}": SHOW_MODEL,
    REQUESTS_PREFIX + "{id}" + CANCEL_SUFFIX: CANCEL_REQUEST,
}
"""Paths with a name in them, as the description of the routes writes them; `find_endpoint` knows them."""


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
        for suffix, endpoint in MODEL_ENDPOINTS.items():
            if path.endswith(suffix) and len(path) > len(MODEL_PREFIX) + len(suffix):
                return endpoint, path[len(MODEL_PREFIX) : -len(suffix)]
    raise ProxyError("route_not_found", f"There is no route {shown(path)}.")


class PublicEndpoint:
    """The ASGI application behind all public paths."""

    def __init__(self, services: ProxyServices) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request to its end, whatever that is."""
        exchange = self._exchange(scope, receive, send)
        status: int | None = None
        try:
            status = await _serve(exchange, scope["path"], scope["method"])
        finally:
            exchange.answer.close()
            exchange.share.give_back()
            if scope["method"] == "POST":
                ended = exchange.request.record(status or CLIENT_CLOSED, self._services.clock())
                exchange.count_out(ended)
                self._services.on_finished(ended)

    def _exchange(self, scope: Scope, receive: Receive, send: Send) -> Exchange:
        services = self._services
        request = ActiveRequest(services.new_id(), services.now(), scope["path"], services.clock())
        return Exchange(
            services=services,
            request=request,
            answer=ClientAnswer(send, request_id=request.id, limits=services.limits),
            receive=receive,
            headers=header_values(scope),
            query=scope["query_string"].decode("latin-1"),
            manifest=services.current.manifest,
            share=services.bodies.share(),
        )


async def _serve(exchange: Exchange, path: str, method: str) -> int | None:
    """Run the handler and give every error its answer; the status to record."""
    try:
        try:
            await _dispatch(exchange, path, method)
            return exchange.recorded_status(exchange.answer.status)
        except ProxyError as error:
            await exchange.fail(error)
            return exchange.recorded_status(error.status)
        except ClientGone:
            raise
        except Exception:
            log.exception("%s: a request failed inside the server", exchange.request.id)
            fault = internal_error(exchange.request.id)
            await exchange.fail(fault)
            return fault.status
    except ClientGone:
        return CLIENT_CLOSED


async def _dispatch(exchange: Exchange, path: str, method: str) -> None:
    if await _is_answered_to_a_page(exchange, method):
        return
    endpoint, exchange.path_name = find_endpoint(path)
    exchange.request.route = endpoint.route
    if ("GET" if method == "HEAD" else method) != endpoint.method:
        allow = {"allow": endpoint.method}
        raise ProxyError("method_not_allowed", f"{shown(path)} takes {endpoint.method} only.", headers=allow)
    if not endpoint.is_open:
        exchange.key = authorise(exchange.headers, exchange.manifest)
        exchange.request.key = exchange.key.name if exchange.key is not None else None
    if endpoint.method == "POST" and endpoint is not CANCEL_REQUEST:
        exchange.count_in()
    await endpoint.handler(exchange)


async def _is_answered_to_a_page(exchange: Exchange, method: str) -> bool:
    """Whether a browser only asked what its page may do; and what every answer says to pages."""
    cors = exchange.manifest.server.cors
    if not cors:
        return False
    exchange.answer.headers = answer_headers(exchange.headers, cors)
    found = preflight_headers(exchange.headers, cors) if method == "OPTIONS" else None
    if found is not None:
        await exchange.answer.send_json(OK, b"", found)
    return found is not None


def public_routes(proxy: ProxyServices) -> list[BaseRoute]:
    """Routes for the assembly's application; none of them belongs to the dashboard or `/api`."""
    endpoint = PublicEndpoint(proxy)
    return [Route(path, endpoint, include_in_schema=False) for path in PATHS]
