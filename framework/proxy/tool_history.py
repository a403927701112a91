"""Calls of tools in the history of a chat: their arguments must be JSON (cases TC-01). Pure.

A template that wants them as objects has the engine fail over text that is none, which it calls an error of
its own; a program would try again for ever. Called before a model is loaded; the caller's lists stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from framework.proxy.errors import ProxyError

Object = Mapping[str, Any]
NONE = "{}"


def prepare_tool_history(messages: Any) -> Any:
    """The messages with `{}` where a call has no arguments, which many programs write as empty text.

    The same object when nothing changes. Raises ProxyError `invalid_body` that names the first call whose
    arguments break, and where they do.
    """
    if not isinstance(messages, list) or not any(_has_calls(message) for message in messages):
        return messages
    return [_message(f"messages[{n}]", message) for n, message in enumerate(messages)]


def _has_calls(message: Any) -> bool:
    return isinstance(message, Mapping) and isinstance(message.get("tool_calls"), list)


def _message(path: str, message: Any) -> Any:
    if not _has_calls(message):
        return message
    calls = [_call(f"{path}.tool_calls[{n}]", call) for n, call in enumerate(message["tool_calls"])]
    return {**message, "tool_calls": calls}


def _call(path: str, call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    if not arguments.strip():
        return {**call, "function": {**function, "arguments": NONE}}
    field = f"{path}.function.arguments"
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        raise ProxyError(
            "invalid_body", f"`{field}` must be the text of a JSON value: {error}.", param=field
        ) from error
    return call
