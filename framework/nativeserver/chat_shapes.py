"""JSON of chat completions: messages, choices and the deltas of chunks (12 §8.4-8.6, 15 §6). Pure."""

from __future__ import annotations

from typing import Any

from framework.chat.deltas import Delta
from framework.chat.reply import ParsedReply

ROLE_DELTA: dict[str, Any] = {"role": "assistant", "content": None}


def message_json(reply: ParsedReply) -> dict[str, Any]:
    """The message of a choice."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if not reply.content and reply.tool_calls:
        message["content"] = None
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                "id": call.call_id,
            }
            for call in reply.tool_calls
        ]
    return message


def delta_json(delta: Delta, call_id: str = "") -> dict[str, Any]:
    """`delta` of a chunk; `call_id` where a call begins."""
    if delta.call_index < 0:
        return {"content": delta.content} if delta.content else {"reasoning_content": delta.reasoning}
    if not delta.call_name:
        return {"tool_calls": [{"index": delta.call_index, "function": {"arguments": delta.arguments}}]}
    function = {"name": delta.call_name, "arguments": delta.arguments}
    call = {"index": delta.call_index, "id": call_id, "type": "function", "function": function}
    return {"tool_calls": [call]}
