"""The application behind the public paths, and the one place where requests end (08 §26).

A plain ASGI application below Starlette: nothing buffers between a handler and the socket. Unknown paths and
methods below `/v1` and `/m` are answered here too, in the same envelope as everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from framework.proxy.access import authorise
from framework.proxy.client import ClientAnswer
from framework.proxy.cors import answer_headers, preflight_headers
from framework.proxy.endpoints import CANCEL_REQUEST, OK, PATHS, error_form, find_endpoint
from framework.proxy.errors import CLIENT_CLOSED, ClientGone, ProxyError, internal_error
from framework.proxy.exchange import Exchange, header_values
from framework.proxy.key_guesses import address_of
from framework.proxy.model_choice import shown
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices
from framework.values.manifest import AccessKey, Manifest
from framework.values.request_record import RequestRecord

log = logging.getLogger(__name__)

Identify = Callable[[Mapping[str, str], Manifest], AccessKey | None]
"""Whose request it is, by its headers. Raises ProxyError 401, 403 or 429."""


@dataclass(frozen=True)
class Served:
    """A request that has ended, with the engine's own timings where it told any."""

    record: RequestRecord
    timings: Mapping[str, Any]


class PublicEndpoint:
    """The ASGI application behind all public paths."""

    def __init__(self, services: ProxyServices) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request to its end, whatever that is."""
        judge = partial(self._services.guesses.judge, address_of(scope))
        await self._serve_as(partial(authorise, judge=judge), scope, receive, send)

    async def serve_proven(self, scope: Scope, receive: Receive, send: Send, key: AccessKey | None) -> Served:
        """Serve a request of somebody who is proven already, as the dashboard's sessions are. Everything else
        is as for any client: limits of the key, queue, lease and record. None is nobody's key: no limits."""
        return await self._serve_as(lambda _headers, _manifest: key, scope, receive, send)

    async def _serve_as(self, identify: Identify, scope: Scope, receive: Receive, send: Send) -> Served:
        exchange = self._exchange(scope, receive, send)
        status: int | None = None
        try:
            status = await _serve(exchange, scope["path"], scope["method"], identify)
        finally:
            exchange.answer.close()
            exchange.share.give_back()
            ended = exchange.request.record(status or CLIENT_CLOSED, self._services.clock())
            if scope["method"] == "POST":
                exchange.count_out(ended)
                self._services.on_finished(ended)
        return Served(ended, exchange.request.state.timings or {})

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


async def _serve(exchange: Exchange, path: str, method: str, identify: Identify) -> int | None:
    """Run the handler and give every error its answer; the status to record."""
    try:
        try:
            await _dispatch(exchange, path, method, identify)
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


async def _dispatch(exchange: Exchange, path: str, method: str, identify: Identify) -> None:
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
        exchange.key = identify(exchange.headers, exchange.manifest)
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
