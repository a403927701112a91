"""Requests of the page Try to the endpoint, in process: the same handlers, limits, queue and record as for
any client, with the key of the session in place of one in a header.

`stream` hands a request of the page's script on as it is, and adds one event at the end of a stream with what
the endpoint measured. `ask` makes a request for a browser without script and waits for the whole answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from framework.api.auth import authorise
from framework.api.endpoint import Json
from framework.api.errors import ApiError
from framework.api.services import Services
from framework.api.shapes.requests import TIMES
from framework.dashboard.answers import EVENT_STREAM
from framework.dashboard.tryout.numbers import numbers_of
from framework.proxy.errors import error_object
from framework.proxy.routes import Served
from framework.values.manifest import AccessKey
from framework.values.rounding import rounded

PREFIX = "/try"
# Of a browser's headers the endpoint needs only what describes the body. Cookies are nothing to it.
KEPT_HEADERS = (b"content-type", b"content-length", b"content-encoding")
MEASURED = ("id", "model", "replica", "instance", "status", "error", "prompt_tokens", "cached_tokens")
LATER = ("generated_tokens", "drafted", "accepted", "stop_reason")
LIMIT_BYTES = 4 * 2**20
TIME_DIGITS = 3


class Proven(Response):
    """The answer of the endpoint to a request of a page; made where the caller has been proven."""

    def __init__(self, services: Services, key: AccessKey | None) -> None:
        super().__init__()
        self._services = services
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request that the page sent, under the endpoint's own path."""
        watched = _WithMeasures(send)
        inner = endpoint_scope(scope, scope["path"].removeprefix(PREFIX), scope["headers"])
        served = await self._services.serve(inner, receive, watched, self._key)
        await watched.finish(served)


async def stream(services: Services, request: Request) -> Response:
    """A route of the endpoint for pages. A refusal is JSON, as the endpoint's own errors are."""
    try:
        caller = authorise(request, services, "view")
    except ApiError as error:
        return Json({"error": error_object(error, "")}, error.status, error.headers)
    return Proven(services, caller.key)


@dataclass
class Whole:
    """A complete answer of the endpoint."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    served: Served | None = None

    @property
    def json(self) -> dict[str, Any]:
        """The body, empty where it is no object."""
        try:
            found = json.loads(bytes(self.body))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    async def take(self, message: Message) -> None:
        """An ASGI message of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
            }
        else:
            self.body += message.get("body", b"")
            if len(self.body) > LIMIT_BYTES:
                # As a client that takes no more: the endpoint ends the request.
                raise OSError("the answer is too long for a page")


async def ask(
    services: Services,
    scope: Scope,
    path: str,
    body: Mapping[str, Any],
    key: AccessKey | None,
    left: asyncio.Event,
) -> Whole:
    """Make a request and wait for its whole answer; `left` ends it, as a client that leaves does."""
    raw = json.dumps(body).encode()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": raw, "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    whole = Whole()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
    whole.served = await services.serve(endpoint_scope(scope, path, headers), receive, whole.take, key)
    return whole


def endpoint_scope(scope: Scope, path: str, headers: list[tuple[bytes, bytes]]) -> Scope:
    """The scope of a request to a route of the endpoint, as this connection would send it."""
    kept = [(name, value) for name, value in headers if name in KEPT_HEADERS]
    return {**scope, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": kept}


class _WithMeasures:
    """A `send` that keeps the end of a stream back, so that one event more fits before it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_stream = False
        self._held = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            types = (value for name, value in message["headers"] if name == b"content-type")
            self._is_stream = any(value.startswith(EVENT_STREAM.encode()) for value in types)
        elif self._is_stream and not message.get("more_body", False):
            self._held = True
            message = {**message, "more_body": True}
        await self._send(message)

    async def finish(self, served: Served) -> None:
        """Send what was measured, and the end."""
        if not self._held:
            return
        event = f"event: measured\ndata: {json.dumps(measured_json(served))}\n\n"
        try:
            await self._send({"type": "http.response.body", "body": event.encode(), "more_body": False})
        except OSError:
            # The page has gone; its request has ended all the same.
            return


def measured_json(served: Served) -> dict[str, Any]:
    """What is told of a request beside its answer: its record (13 §9), and the same in words."""
    record = served.record
    times = {name: rounded(getattr(record, name), TIME_DIGITS) for name in TIMES}
    rest = {name: getattr(record, name) for name in (*MEASURED, *LATER)}
    numbers = [list(pair) for pair in numbers_of(record, served.timings)]
    return {**rest, **times, "numbers": numbers}
