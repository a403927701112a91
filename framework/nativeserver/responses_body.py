"""A body of `/v1/responses` as a chat body (12 §9.1-9.2). Called by responses. Raises ApiError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framework.nativeserver.conversion import objects, optional, refusal, required, without

Item = Mapping[str, Any]

_CONVERTED = frozenset(
    (
        *("input", "instructions", "tools", "tool_choice", "max_output_tokens", "text", "reasoning"),
        *("previous_response_id", "conversation", "store", "top_logprobs", "include", "prompt", "truncation"),
    )
)
_TEXT_PARTS = ("input_text", "output_text", "text", "refusal")
_TEXT_KEYS = {"refusal": "refusal"}


def chat_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat body; fields of both are kept."""
    for name in ("previous_response_id", "conversation"):
        if body.get(name) is not None:
            raise refusal(f"Field '{name}': is not supported, since nothing is stored; send the whole input")
    chat = without(body, _CONVERTED)
    chat["messages"] = _messages(body)
    if (tools := body.get("tools")) is not None:
        chat["tools"] = [_tool(tool) for tool in objects(tools, "tools")]
    if (choice := body.get("tool_choice")) is not None:
        chat["tool_choice"] = _tool_choice(choice)
    if (most := optional(body, "max_output_tokens", int)) is not None:
        chat["max_tokens"] = most
    if (wanted := _response_format(body)) is not None:
        chat["response_format"] = wanted
    reasoning = optional(body, "reasoning", dict) or {}
    if (effort := optional(reasoning, "effort", str, "reasoning.")) is not None:
        chat["reasoning_effort"] = effort
    return chat


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input")
    conversation = _Conversation()
    if (instructions := optional(body, "instructions", str)) is not None:
        conversation.messages.append({"role": "system", "content": instructions})
    if isinstance(given, str):
        conversation.messages.append({"role": "user", "content": given})
    elif isinstance(given, list) and given:
        for item in objects(given, "input"):
            conversation.add(item)
    else:
        raise refusal("'input' must be a string or a non-empty array of objects")
    return conversation.finished()


class _Conversation:
    """Items on their way to messages: those of one turn of the assistant are joined."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._reasoning: list[str] = []

    def add(self, item: Item) -> None:
        kind = item.get("type", "message")
        adders: dict[str, Callable[[Item], None]] = {
            "message": self._add_message,
            "reasoning": self._add_reasoning,
            "function_call": self._add_call,
            "function_call_output": self._add_output,
        }
        if not isinstance(kind, str) or kind not in adders:
            known = ", ".join(adders)
            raise refusal(f"Field 'input': items of type {kind!r:.80} are not supported; known are {known}")
        adders[kind](item)

    def finished(self) -> list[dict[str, Any]]:
        if self._reasoning:
            self._assistant()
        return self.messages

    def _add_message(self, item: Item) -> None:
        role = required(item, "role", str, "input[].")
        content = _content(item.get("content"))
        if role == "assistant":
            message = self._assistant()
            message["content"] = _joined(message["content"], content)
            return
        self.messages.append({"role": role, "content": content})

    def _add_reasoning(self, item: Item) -> None:
        parts = item.get("content") or item.get("summary") or []
        texts = (optional(part, "text", str) or "" for part in objects(parts, "input[].content"))
        self._reasoning.append("".join(texts))

    def _add_call(self, item: Item) -> None:
        function = {
            "name": required(item, "name", str, "input[]."),
            "arguments": required(item, "arguments", str, "input[]."),
        }
        call_id = required(item, "call_id", str, "input[].")
        calls = self._assistant().setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": function})

    def _add_output(self, item: Item) -> None:
        call_id = required(item, "call_id", str, "input[].")
        content = _content(item.get("output"))
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})

    def _assistant(self) -> dict[str, Any]:
        """The message of the assistant that the items are part of."""
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != "assistant":
            last = {"role": "assistant", "content": ""}
            self.messages.append(last)
        if self._reasoning:
            last["reasoning_content"] = "\n".join(self._reasoning)
            self._reasoning = []
        return last


def _joined(one: Any, other: Any) -> Any:
    if not one:
        return other
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n{other}"
    return [*_as_parts(one), *_as_parts(other)]


def _as_parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _content(content: Any) -> Any:
    """Text, or parts as chats have them; other kinds of parts are refused with the messages."""
    if isinstance(content, str):
        return content
    if content is None:
        raise refusal("Field 'input': an item has no content")
    return [_part(part) for part in objects(content, "input[].content")]


def _part(part: Item) -> dict[str, Any]:
    kind = part.get("type")
    if kind in _TEXT_PARTS:
        key = _TEXT_KEYS.get(kind, "text")
        return {"type": "text", "text": required(part, key, str, "input[].content[].")}
    return dict(part)


def _tool(tool: Item) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise refusal(f"Field 'tools': type must be 'function', but is {tool.get('type')!r:.80}")
    required(tool, "name", str, "tools[].")
    return {"type": "function", "function": without(tool, frozenset({"type"}))}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, dict) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": required(choice, "name", str, "tool_choice.")}}
    return choice


def _response_format(body: Mapping[str, Any]) -> dict[str, Any] | None:
    text = optional(body, "text", dict) or {}
    wanted = optional(text, "format", dict, "text.")
    if wanted is None:
        return None
    if wanted.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": without(wanted, frozenset({"type"}))}
    return dict(wanted)
