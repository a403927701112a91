"""What callers send: query parameters and JSON bodies, checked and bounded. Raises ApiError 400 or 413."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import orjson
from starlette.requests import Request

from framework.api.errors import ApiError
from framework.values.units_text import read_whole_number, whole_number_text

# A manifest of 500 models has about 200 kB; this bounds what one caller can make us hold.
MAX_BODY_BYTES = 4 * 2**20
# So much over a line of 1 Mbit/s; whoever needs longer holds a connection open.
BODY_TIMEOUT_S = 60.0
LONGEST_SHOWN = 100
TRUE_WORDS = frozenset({"1", "true", "yes"})
FALSE_WORDS = frozenset({"", "0", "false", "no"})


def whole_number(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """A query parameter that is a whole number in a range."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if (number := read_whole_number(text, low, high)) is not None:
        return number
    raise bad_value(name, text, whole_number_text(low, high))


def yes_or_no(request: Request, name: str) -> bool:
    """A query parameter that is a switch; absent means no."""
    text = request.query_params.get(name, "").lower()
    if text in TRUE_WORDS:
        return True
    if text in FALSE_WORDS:
        return False
    raise bad_value(name, text, "1 or 0")


def only_parameters(request: Request, allowed: Collection[str]) -> None:
    """Refuse query parameters that nothing reads, and those that are given twice."""
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name not in allowed:
            raise _unknown(name, "query parameter", allowed)
        if name in seen:
            raise ApiError(400, "invalid_body", f"{name} is given twice; give it once.", param=name)
        seen.add(name)


def one_of(name: str, value: object, allowed: Collection[str]) -> str:
    """A value that must be one of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    raise bad_value(name, str(value), ", ".join(allowed))


async def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty object."""
    body = await _body(request)
    if not body.strip():
        return {}
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, "invalid_body", f"The body is not valid JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise ApiError(400, "invalid_body", "The body must be a JSON object.")
    return parsed


def only_fields(body: dict[str, Any], allowed: Collection[str]) -> None:
    """Refuse fields that nothing reads, so that a misspelt one is noticed."""
    for name in body:
        if name not in allowed:
            raise _unknown(name, "field", allowed)


def bad_value(name: str, found: str, allowed: str) -> ApiError:
    """The refusal of one parameter or field."""
    message = f"{name}: found {found[:LONGEST_SHOWN]!r}, allowed is {allowed}."
    return ApiError(400, "invalid_body", message, param=name)


def _unknown(name: str, what: str, allowed: Collection[str]) -> ApiError:
    """The refusal of what nothing reads."""
    known = f"allowed is {', '.join(allowed)}" if allowed else "there is none here"
    message = f"{name[:LONGEST_SHOWN]!r} is no {what} of this route; {known}."
    return ApiError(400, "invalid_body", message, param=name[:LONGEST_SHOWN])


async def _body(request: Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _whole_body(request)
    except TimeoutError as error:
        message = f"The body did not arrive within {BODY_TIMEOUT_S:.0f} s; send it again."
        raise ApiError(400, "invalid_body", message, headers={"Connection": "close"}) from error


async def _whole_body(request: Request) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            message = f"The body is larger than {MAX_BODY_BYTES} bytes."
            raise ApiError(413, "body_too_large", message)
        chunks.append(chunk)
    return b"".join(chunks)
