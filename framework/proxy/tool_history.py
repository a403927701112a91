"""Calls of tools in the history of a chat: their arguments must be JSON (cases TC-01). Pure.

A template that wants them as objects has the engine fail over text that is none, which it calls an error of
its own; a program would try again for ever. Called before a model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from framework.proxy.errors import ProxyError


def check_tool_history(messages: Any) -> None:
    """Raises ProxyError `invalid_body` that names the first call whose arguments break, and where."""
    for path, arguments in _arguments(messages):
        try:
            orjson.loads(arguments)
        except orjson.JSONDecodeError as error:
            raise ProxyError(
                "invalid_body", f"`{path}` must be the text of a JSON value: {error}.", param=path
            ) from error


def _arguments(messages: Any) -> Iterator[tuple[str, str]]:
    """Path and text of the arguments of every call; those of no text are left to the engine."""
    for number, message in _objects(messages):
        for index, call in _objects(message.get("tool_calls")):
            function = call.get("function")
            arguments = function.get("arguments") if isinstance(function, Mapping) else None
            # Programs write nothing where a call has no arguments.
            if isinstance(arguments, str) and arguments.strip():
                yield f"messages[{number}].tool_calls[{index}].function.arguments", arguments


def _objects(values: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, Mapping):
            yield index, value
