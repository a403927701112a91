"""Checks that the conversions of other interfaces' bodies into chat bodies share. Errors name the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request

from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import json_type, wrong_type
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.transport import read_json

TYPE_NAMES: dict[type, str] = {str: "string", dict: "object", list: "array", int: "number", bool: "boolean"}


async def read_converted(
    request: Request, convert: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The body as a chat body; converted beside the event loop when it is large. Raises ApiError."""
    body = await read_json(request)
    return await off_loop_if(is_large(body), convert, body)


def refusal(message: str) -> ApiError:
    """What the client did wrong."""
    return ApiError("invalid_request", message)


def optional(source: Mapping[str, Any], name: str, kind: type, where: str = "") -> Any:
    """A member of one JSON type; None when it is absent or null."""
    value = source.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise wrong_type(f"{where}{name}", TYPE_NAMES[kind], value)
    return value


def required(source: Mapping[str, Any], name: str, kind: type, where: str = "") -> Any:
    """A member that has to be there."""
    value = optional(source, name, kind, where)
    if value is None:
        raise refusal(f"'{where}{name}' is required")
    return value


def objects(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """An array of objects."""
    if not isinstance(value, list):
        raise wrong_type(name, "array", value)
    for entry in value:
        if not isinstance(entry, dict):
            raise refusal(f"Field '{name}': every entry must be an object, but one is {json_type(entry)}")
    return value


def without(body: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The members that mean the same in a chat body."""
    return {name: value for name, value in body.items() if name not in names}
