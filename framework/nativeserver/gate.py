"""Rules of every request, in their order: CORS, `OPTIONS`, loading, key, route, errors (12 §2, 15 §4-5).

Put around the routes by app; plain ASGI, so that streams pass through untouched.
"""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from framework.nativeserver.bridge import BEFORE_READY, FAILED, LOADING, STOPPED
from framework.nativeserver.client_watch import ClientGone
from framework.nativeserver.cors import cors_headers, preflight_headers
from framework.nativeserver.errors import ApiError
from framework.nativeserver.keys import ApiKeys
from framework.nativeserver.services import Services
from framework.nativeserver.transport import error_response

log = logging.getLogger(__name__)

# Clients find out by this name that they talk to llama.cpp's interface.
SERVER_NAME = "llama.cpp"
PUBLIC_PATHS = ("/health", "/v1/health", "/models", "/v1/models")
ANTHROPIC_PATHS = "/v1/messages"
"""Routes under it tell errors in Anthropic's envelope (12 §2.11)."""
OPTIONS_TYPE = {"content-type": "text/html"}


class Gate:
    """Answers what no route has to see, and makes answers of errors."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        options = services.options
        self._keys = ApiKeys(options.api_keys)
        self._public = frozenset(options.api_prefix + path for path in PUBLIC_PATHS)
        self._anthropic = options.api_prefix + ANTHROPIC_PATHS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, self._headers(scope))
        try:
            early = self._early_answer(scope)
            await (early or self._app)(scope, receive, answer.send)
        except ClientGone:
            log.debug("the client of %s is gone", scope["path"])
        except ApiError as error:
            await self._tell(error, answer, scope, receive)
        except Exception as error:
            if answer.has_begun:
                raise
            log.exception("an error nobody foresaw, at %s", scope["path"])
            unforeseen = ApiError("server", "Internal error; details are in the server's log")
            unforeseen.__cause__ = error
            await self._tell(unforeseen, answer, scope, receive)

    async def _tell(self, error: ApiError, answer: _Answer, scope: Scope, receive: Receive) -> None:
        if answer.has_begun:
            raise error
        path = str(scope["path"])
        is_anthropic = path == self._anthropic or path.startswith(f"{self._anthropic}/")
        await error_response(error, anthropic=is_anthropic)(scope, receive, answer.send)

    def _headers(self, scope: Scope) -> dict[str, str]:
        origin = Headers(scope=scope).get("origin", "")
        return {"server": SERVER_NAME, **cors_headers(self._services.options.cors, origin)}

    def _early_answer(self, scope: Scope) -> Response | None:
        """What is answered before any route is looked at. Raises ApiError."""
        options = self._services.options
        if scope["method"] == "OPTIONS":
            return Response(b"", headers={**OPTIONS_TYPE, **preflight_headers(options.cors)})
        state = self._services.bridge.state
        if state == FAILED:
            raise ApiError("server", "The engine has failed; see its log")
        if state == STOPPED:
            raise ApiError("unavailable", "The server is shutting down")
        if state in BEFORE_READY or self._services.created_at == 0:
            raise ApiError("unavailable", LOADING)
        if self._keys and scope["path"] not in self._public and not self._keys.allow(scope["headers"]):
            raise ApiError("authentication", "Invalid API Key")
        return None


class _Answer:
    """The way back to the client: puts the common headers on, and knows whether the answer has begun."""

    def __init__(self, send: Send, headers: dict[str, str]) -> None:
        self._send = send
        self._headers = headers
        self.has_begun = False

    async def send(self, message: Message) -> None:
        """ASGI."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            MutableHeaders(scope=message).update(self._headers)
        await self._send(message)
