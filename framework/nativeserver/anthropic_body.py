"""A body of `/v1/messages` as a chat body (12 §10.1). Called by anthropic. Raises ApiError."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from framework.nativeserver.conversion import objects, optional, refusal, required, without

Block = Mapping[str, Any]

MAX_TOKENS = 4096
"""When the client names no limit."""
_CONVERTED = frozenset(
    (
        *("messages", "system", "tools", "tool_choice", "stop_sequences", "thinking", "metadata"),
        "prompt",
    )
)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def chat_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat body; fields of both are kept."""
    chat = without(body, _CONVERTED)
    messages: list[dict[str, Any]] = []
    if (system := body.get("system")) is not None:
        messages.append({"role": "system", "content": _text_of(system, "system")})
    for message in objects(required(body, "messages", list), "messages"):
        messages += _messages(message)
    chat["messages"] = messages
    if chat.get("max_tokens") is None:
        chat["max_tokens"] = MAX_TOKENS
    if (stop := body.get("stop_sequences")) is not None:
        chat["stop"] = stop
    if (tools := body.get("tools")) is not None:
        chat["tools"] = [_tool(tool) for tool in objects(tools, "tools")]
        chat.setdefault("parallel_tool_calls", True)
    _convert_choice(chat, optional(body, "tool_choice", dict))
    _convert_thinking(chat, optional(body, "thinking", dict))
    return chat


def _messages(message: Block) -> list[dict[str, Any]]:
    """A message of the user may hold results of calls, which are messages of their own."""
    role = required(message, "role", str, "messages[].")
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    blocks = objects(content, "messages[].content")
    if role == "assistant":
        return [_assistant(blocks)]
    results = [_tool_result(block) for block in blocks if block.get("type") == "tool_result"]
    parts = [_part(block) for block in blocks if block.get("type") != "tool_result"]
    return [*results, *([{"role": role, "content": parts}] if parts else [])]


def _assistant(blocks: Any) -> dict[str, Any]:
    parts, reasoning, calls = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "thinking":
            reasoning.append(required(block, "thinking", str, "messages[].content[]."))
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind != "redacted_thinking":
            parts.append(_part(block))
    message: dict[str, Any] = {"role": "assistant", "content": parts or ""}
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    return message | {"tool_calls": calls} if calls else message


def _call(block: Block) -> dict[str, Any]:
    arguments = json.dumps(optional(block, "input", dict, "messages[].content[].") or {}, ensure_ascii=False)
    name = required(block, "name", str, "messages[].content[].")
    call_id = required(block, "id", str, "messages[].content[].")
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _tool_result(block: Block) -> dict[str, Any]:
    call_id = required(block, "tool_use_id", str, "messages[].content[].")
    content = block.get("content")
    if isinstance(content, list):
        content = [_part(part) for part in objects(content, "messages[].content[].content")]
    elif content is not None and not isinstance(content, str):
        raise refusal("The content of a tool_result must be a string or an array of blocks")
    return {"role": "tool", "tool_call_id": call_id, "content": content or ""}


def _part(block: Block) -> dict[str, Any]:
    """A text block as a part of a chat message; images are refused where those are."""
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": required(block, "text", str, "messages[].content[].")}
    if kind == "image":
        return {"type": "image_url"}
    raise refusal(f"Content blocks of type {kind!r:.80} are not supported here")


def _text_of(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(required(block, "text", str, f"{name}[].") for block in objects(value, name))


def _tool(tool: Block) -> dict[str, Any]:
    kind = tool.get("type") or "custom"
    if kind != "custom":
        raise refusal(f"Field 'tools': type must be 'custom', but is {kind!r:.80}")
    function: dict[str, Any] = {"name": required(tool, "name", str, "tools[].")}
    if (description := optional(tool, "description", str, "tools[].")) is not None:
        function["description"] = description
    function["parameters"] = optional(tool, "input_schema", dict, "tools[].") or {"type": "object"}
    return {"type": "function", "function": function}


def _convert_choice(chat: dict[str, Any], choice: Block | None) -> None:
    if choice is None:
        return
    kind = choice.get("type")
    if kind == "tool":
        function = {"name": required(choice, "name", str, "tool_choice.")}
        chat["tool_choice"] = {"type": "function", "function": function}
    elif isinstance(kind, str) and kind in _CHOICES:
        chat["tool_choice"] = _CHOICES[kind]
    else:
        raise refusal(f"tool_choice.type must be one of auto, any, tool, none, but is {kind!r:.80}")
    if optional(choice, "disable_parallel_tool_use", bool, "tool_choice."):
        chat["parallel_tool_calls"] = False


def _convert_thinking(chat: dict[str, Any], thinking: Block | None) -> None:
    """`adaptive` leaves it to the model."""
    kind = None if thinking is None else thinking.get("type")
    if thinking is None or kind == "adaptive":
        return
    if kind not in ("enabled", "disabled"):
        raise refusal(f"thinking.type must be one of enabled, disabled, adaptive, but is {kind!r:.80}")
    variables = optional(chat, "chat_template_kwargs", dict) or {}
    chat["chat_template_kwargs"] = {"enable_thinking": kind == "enabled", **variables}
    budget = optional(thinking, "budget_tokens", int, "thinking.")
    if kind == "enabled" and budget is not None:
        chat.setdefault("reasoning_budget_tokens", budget)
