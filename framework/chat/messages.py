"""Messages as clients send them, in the form that a chat template takes (12 §8.2).

Called by nativeserver.chat_request. What the client sent is never changed; a message that can't be read is a
MessageError, whose text is for the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Message = dict[str, Any]

MEDIA_PARTS = {
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "input_video": "video",
    "video_url": "video",
}
_PASSED_ON = ("name", "tool_call_id", "reasoning_content")


class MessageError(ValueError):
    """A conversation that can't be read."""


def read_messages(messages: Any, caps: Mapping[str, bool]) -> list[Message]:
    """The conversation for a template of such capabilities (names of `ChatTemplate.caps`)."""
    if not isinstance(messages, list):
        raise MessageError("Expected 'messages' to be an array")
    read = [_message(message, caps) for message in messages]
    return read if caps["supports_system_role"] else _without_system(read, caps)


def text_of(content: Any) -> str:
    """The text of content that was read, whichever form it has."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _message(message: Any, caps: Mapping[str, bool]) -> Message:
    if not isinstance(message, dict):
        raise MessageError(f"Each message must be an object, not {type(message).__name__}")
    role = message.get("role")
    if not isinstance(role, str):
        raise MessageError("Missing 'role' in a message, or it is no string")
    if role == "developer":
        role = "system"
    calls = message.get("tool_calls") or []
    if "content" not in message and role != "assistant":
        raise MessageError("All non-assistant messages must contain 'content'")
    if message.get("content") is None and not calls and role == "assistant":
        raise MessageError("Assistant message must contain either 'content' or 'tool_calls'!")
    read: Message = {"role": role, "content": _content(message.get("content"), caps)}
    if calls:
        read["tool_calls"] = _calls(calls, caps)
    for key in _PASSED_ON:
        if (value := message.get(key)) is not None:
            if not isinstance(value, str):
                raise MessageError(f"'{key}' of a message must be a string")
            read[key] = value
    return read


def _content(content: Any, caps: Mapping[str, bool]) -> Any:
    if content is None:
        content = ""
    if not isinstance(content, str | list):
        raise MessageError("Expected 'content' to be a string or an array")
    parts = None if isinstance(content, str) else [{"type": "text", "text": _text(part)} for part in content]
    if caps["supports_typed_content"]:
        if parts is not None:
            return parts
        return content if caps["supports_string_content"] else [{"type": "text", "text": content}]
    return content if parts is None else text_of(parts)


def _text(part: Any) -> str:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        raise MessageError("unsupported content[].type")
    if kind in MEDIA_PARTS:
        raise MessageError(f"{MEDIA_PARTS[kind]} input is not supported - hint: this engine reads text only")
    text = part.get("text")
    if kind != "text":
        raise MessageError("unsupported content[].type")
    if not isinstance(text, str):
        raise MessageError("A content part of type 'text' needs a string 'text'")
    return text


def _calls(calls: Any, caps: Mapping[str, bool]) -> list[Message]:
    if not isinstance(calls, list):
        raise MessageError("'tool_calls' of a message must be an array")
    return [_call(call, caps["supports_object_arguments"]) for call in calls]


def _call(call: Any, as_object: bool) -> Message:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        raise MessageError("Each of 'tool_calls' needs a 'function' with a string 'name'")
    arguments = function.get("arguments", {})
    if as_object and isinstance(arguments, str):
        arguments = _parsed(arguments)
    elif not as_object and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    read: Message = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return read | {"id": call["id"]} if isinstance(call.get("id"), str) else read


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise MessageError(f"Failed to parse tool call arguments as JSON: {error}") from error


def _without_system(messages: Sequence[Message], caps: Mapping[str, bool]) -> list[Message]:
    """System texts go into the first message of the user, for templates that have no place for them."""
    system = "\n".join(text_of(message["content"]) for message in messages if message["role"] == "system")
    others = [message for message in messages if message["role"] != "system"]
    if not system:
        return others
    at = next((at for at, message in enumerate(others) if message["role"] == "user"), None)
    if at is None:
        return [{"role": "user", "content": _content(system, caps)}, *others]
    first = others[at]
    joined = f"{system}\n{text_of(first['content'])}"
    return [*others[:at], {**first, "content": _content(joined, caps)}, *others[at + 1 :]]
