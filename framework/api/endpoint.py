"""One route of the API: who may call it, which methods it has, and how every outcome becomes JSON.

All routes are made of this class, so an unknown method, a refusal and a fault of ours answer with the same
envelope (13 §7). Called by starlette as an ASGI application.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from framework.api.auth import Caller, Role, authorise
from framework.api.errors import ApiError
from framework.api.inputs import only_parameters
from framework.api.services import Services
from framework.proxy.errors import CLIENT_CLOSED, ProxyError, envelope, internal_error
from framework.values.json_bytes import json_bytes

log = logging.getLogger(__name__)

# Answers hold command lines and paths: they belong into no cache.
PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
REQUEST_ID_BYTES = 8


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(json_bytes(content), status, {**PRIVATE, **(headers or {})})


Handler = Callable[[Request, Services, Caller], Awaitable[Response]]


class Endpoint:
    """An ASGI application for one path, with one handler per method; without any the path is unknown.

    GET needs the role `view`, or the one of `to_look`, everything else `operate` (13 §8). `query` names the
    parameters that it reads.
    """

    def __init__(
        self,
        services: Services,
        handlers: Mapping[str, Handler],
        query: Collection[str] = (),
        *,
        to_look: Role = "view",
    ) -> None:
        self._services = services
        self.handlers = dict(handlers)
        self.query = tuple(query)
        self._to_look = to_look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        request_id = secrets.token_hex(REQUEST_ID_BYTES)
        try:
            need: Role = self._to_look if request.method == "GET" else "operate"
            caller = authorise(request, self._services, need)
            handler = self._handler(request.method)
            only_parameters(request, self.query)
            return await handler(request, self._services, caller)
        except ApiError as error:
            return _refusal(error, request_id)
        except ClientDisconnect:
            return Response(status_code=CLIENT_CLOSED)
        except Exception:
            log.exception("request %s to %s failed", request_id, request.url.path)
            return _refusal(internal_error(request_id), request_id)

    def _handler(self, method: str) -> Handler:
        if not self.handlers:
            raise ApiError(404, "route_not_found", "There is nothing at this path.")
        if method not in self.handlers:
            allowed = ", ".join(sorted(self.handlers))
            message = f"{method} is not possible here; use {allowed}."
            raise ApiError(405, "method_not_allowed", message, headers={"Allow": allowed})
        return self.handlers[method]


def _refusal(error: ProxyError, request_id: str) -> Response:
    headers = {**PRIVATE, **error.headers}
    return Response(envelope(error, request_id), error.status, headers, Json.media_type)
