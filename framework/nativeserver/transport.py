"""Bodies of requests and answers: JSON in UTF-8, within bounds (12 §2.6, §2.11-2.13).

Used by every endpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from framework.nativeserver.client_watch import ClientGone
from framework.nativeserver.errors import ApiError
from framework.nativeserver.json_bounds import MOST_DEPTH, JsonTally, is_deeper, refuse_many_fields
from framework.nativeserver.off_loop import LARGE, off_loop_if
from framework.nativeserver.services import services_of
from framework.values.json_bytes import json_bytes as to_json

__all__ = [
    "JsonResponse",
    "error_response",
    "forget_body",
    "read_any_json",
    "read_json",
    "read_text",
    "to_json",
]

MIB = 2**20
MOST_BODY_BYTES = 512 * MIB
MOST_BODIES_BYTES = 2 * MOST_BODY_BYTES
"""Of all bodies that are being read: clients can't fill the memory by sending slowly."""
JSON_TYPE = "application/json; charset=utf-8"
PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT = 413, 408


class JsonResponse(Response):
    """A value as JSON."""

    media_type = JSON_TYPE

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(to_json(content), status, headers)


def error_response(error: ApiError, *, anthropic: bool = False) -> JsonResponse:
    """The envelope; as llama-server does, it ends the connection, whose body may not have been read."""
    envelope = error.envelope()
    if anthropic:
        envelope = {"type": "error", **envelope}
    return JsonResponse(envelope, error.status, {"connection": "close"})


def read_text(data: bytes) -> str:
    """Bytes of the engine as text; what is no UTF-8 in them becomes U+FFFD."""
    return data.decode(errors="replace")


async def read_json(request: Request) -> dict[str, Any]:
    """The body as an object. Raises ApiError: too large, too slow, malformed, no object, too many fields."""
    body = await read_any_json(request)
    if not isinstance(body, dict):
        raise ApiError("invalid_request", "The body must be a JSON object")
    refuse_many_fields(body)
    return body


async def read_any_json(request: Request) -> Any:
    """The body as any JSON value; of a key that comes twice the last value counts. Raises ApiError."""
    read: tuple[bytearray, JsonTally] | None = getattr(request.state, "raw_body", None)
    if read is None:
        # The stream can be read once, and the request may be tried once more.
        read = request.state.raw_body = await _read(request)
    raw, tally = read
    return await off_loop_if(len(raw) > LARGE, _parsed, raw, tally)


def forget_body(request: Request) -> None:
    """To be called when the request needs no second try: a body can be large, and an answer long."""
    request.state.raw_body = None


def _parsed(raw: bytearray, tally: JsonTally) -> Any:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as problem:
        raise ApiError("invalid_request", f"The body is not JSON: {problem}") from None
    if tally.may_be_deep and is_deeper(value, MOST_DEPTH):
        raise ApiError("invalid_request", f"The body is nested more than {MOST_DEPTH} levels deep")
    return value


async def _read(request: Request) -> tuple[bytearray, JsonTally]:
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced) > MOST_BODY_BYTES:
        raise _too_large()
    services, body, tally, n_bytes = services_of(request), bytearray(), JsonTally(), 0
    try:
        async for chunk in _chunks(request, services.options.timeout_s):
            n_bytes += len(chunk)
            services.bytes_being_read += len(chunk)
            if n_bytes > MOST_BODY_BYTES:
                raise _too_large()
            if services.bytes_being_read > MOST_BODIES_BYTES:
                raise ApiError("unavailable", "Too many large bodies are being sent at once; try again")
            tally.add(chunk)
            if tally.fault is None:
                body += chunk
            else:
                # Most clients read no answer before everything is sent; nothing of it is kept meanwhile.
                body.clear()
        if tally.fault is not None:
            raise tally.fault
        return body, tally
    finally:
        services.bytes_being_read -= n_bytes


async def _chunks(request: Request, patience_s: float) -> AsyncIterator[bytes]:
    """Pieces of the body. Raises ApiError when none comes in time, ClientGone when none will come."""
    stream = aiter(request.stream())
    while True:
        try:
            chunk = await asyncio.wait_for(anext(stream), patience_s)
        except StopAsyncIteration:
            return
        except ClientDisconnect:
            raise ClientGone from None
        except TimeoutError:
            text = f"Nothing more of the body came within {patience_s} s"
            raise ApiError("invalid_request", text, status_override=REQUEST_TIMEOUT) from None
        yield chunk


def _too_large() -> ApiError:
    text = f"The body is larger than {MOST_BODY_BYTES // MIB} MiB"
    return ApiError("invalid_request", text, status_override=PAYLOAD_TOO_LARGE)
