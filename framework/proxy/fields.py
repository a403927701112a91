"""Fields of a request's body that the endpoint itself reads, and what is said when they are wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.errors import ProxyError


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A switch; absent and null are false. Raises ProxyError `invalid_body`."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong(name, "true or false")
    return bool(value)


def optional_text(body: Mapping[str, Any], name: str) -> str | None:
    """A text, None for absent and null. Raises ProxyError `invalid_body`."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(name, "text")
    return value


def optional_object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object, empty for absent and null. Raises ProxyError `invalid_body`."""
    value = body.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise wrong(name, "an object")
    return value or {}


def wrong(name: str, wanted: str) -> ProxyError:
    """A field that is not what it must be."""
    return ProxyError("invalid_body", f"`{name}` must be {wanted}.", param=name)
