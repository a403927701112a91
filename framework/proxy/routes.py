"""The application behind the public paths, and the one place where requests end (08 §26).

A plain ASGI application below Starlette: nothing buffers between a handler and the socket. Unknown paths and
methods below `/v1` and `/m` are answered here too, in the same envelope as everything else.
"""

from __future__ import annotations

import logging

from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from framework.proxy.access import authorise
from framework.proxy.client import ClientAnswer
from framework.proxy.cors import answer_headers, preflight_headers
from framework.proxy.endpoints import CANCEL_REQUEST, OK, PATHS, error_form, find_endpoint
from framework.proxy.errors import CLIENT_CLOSED, ClientGone, ProxyError, internal_error
from framework.proxy.exchange import Exchange, header_values
from framework.proxy.model_choice import shown
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices

log = logging.getLogger(__name__)


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
    exchange.answer.error_form = error_form(path)
    if await _is_answered_to_a_page(exchange, method):
        return
    endpoint, exchange.path_name = find_endpoint(path)
    exchange.request.route = endpoint.route
    if ("GET" if method == "HEAD" else method) != endpoint.method:
        allow = {"allow": endpoint.method}
        why = f": {endpoint.hint}" if endpoint.hint else ""
        sentence = f"{shown(path)} takes {endpoint.method} only{why}."
        raise ProxyError("method_not_allowed", sentence, headers=allow)
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
