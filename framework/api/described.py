"""What a handler answers and takes, said where it is written; read by the description at `/openapi.json`.

Paths, methods, roles and query parameters are not repeated here: the description takes them from the routes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

JSON = "application/json"
FORM = "multipart/form-data"
TEXT = "text/plain"
EVENT_STREAM = "text/event-stream"
# A rule of the specification that a docstring cites, which tells a caller nothing.
RULE = re.compile(r" ?\([0-9]{2} §[^)]*\)")


@dataclass(frozen=True)
class Description:
    """`answer` and `body` are names of schemas of the description; None is no schema, and no body."""

    summary: str
    answer: str | None = None
    status: int = 200
    body: str | None = None
    media_types: tuple[str, ...] = (JSON,)


AnyHandler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=AnyHandler)
_described: dict[AnyHandler, Description] = {}


def describes(
    answer: str | None = None,
    *,
    status: int = 200,
    body: str | None = None,
    media_types: tuple[str, ...] = (JSON,),
) -> Callable[[H], H]:
    """Say what a handler answers; its docstring begins with what it does."""

    def register(handler: H) -> H:
        _described[handler] = Description(summary_of(handler), answer, status, body, media_types)
        return handler

    return register


def description_of(handler: AnyHandler) -> Description:
    """What was said of a handler, or what its docstring says alone."""
    return _described.get(handler) or Description(summary_of(handler))


def summary_of(handler: AnyHandler) -> str:
    """The first sentence of a handler's docstring."""
    text = " ".join((handler.__doc__ or "").split("\n\n")[0].split())
    return RULE.sub("", text.partition(". ")[0].rstrip("."))
