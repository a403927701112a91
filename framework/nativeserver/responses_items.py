"""JSON of `/v1/responses`: items of the output and the object around them (12 §9.3, 15 §6). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.chat.reply import ParsedReply, ToolCall
from framework.nativeserver.core import Result
from framework.nativeserver.tool_ids import new_item_id
from framework.nativeserver.usage import usage_json

Item = dict[str, Any]
IN_PROGRESS, COMPLETED = "in_progress", "completed"


def reasoning_item(item_id: str, text: str | None) -> Item:
    """`text` None: it has just begun."""
    content = [] if text is None else [{"text": text, "type": "reasoning_text"}]
    return {
        "id": item_id,
        "summary": [],
        "type": "reasoning",
        "content": content,
        "encrypted_content": "",
        "status": _status(is_begun=text is None),
    }


def message_item(item_id: str, text: str | None) -> Item:
    """`text` None: it has just begun."""
    return {
        "content": [] if text is None else [text_part(text)],
        "id": item_id,
        "role": "assistant",
        "status": _status(is_begun=text is None),
        "type": "message",
    }


def text_part(text: str) -> Item:
    """The only part of a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def call_item(item_id: str, call: ToolCall, *, is_begun: bool = False) -> Item:
    """`is_begun`: its arguments follow."""
    return {
        "id": item_id,
        "call_id": call.call_id,
        "name": call.name,
        "arguments": "" if is_begun else call.arguments,
        "status": _status(is_begun=is_begun),
        "type": "function_call",
    }


def output_items(reply: ParsedReply) -> list[Item]:
    """Of a whole reply. One without anything in it has an empty message."""
    items = []
    if reply.reasoning:
        items.append(reasoning_item(new_item_id("rs"), reply.reasoning))
    if reply.content or not (reply.reasoning or reply.tool_calls):
        items.append(message_item(new_item_id("msg"), reply.content))
    return items + [call_item(new_item_id("fc"), call) for call in reply.tool_calls]


def response_usage(finals: Sequence[Result]) -> dict[str, Any]:
    """Counts by their names in this interface."""
    usage = usage_json(finals)
    return {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
        "input_tokens_details": usage["prompt_tokens_details"],
        "output_tokens_details": {"reasoning_tokens": usage["completion_tokens_details"]["reasoning_tokens"]},
    }


def incomplete_details(final: Result) -> dict[str, str] | None:
    """Why the reply is not whole, if it isn't."""
    return None if final.stop in ("word", "eos") else {"reason": "max_output_tokens"}


def _status(*, is_begun: bool) -> str:
    return IN_PROGRESS if is_begun else COMPLETED
