"""What a chat template can do, found out by rendering small conversations and looking for their words.

Called by chat.template when the capabilities are first asked for. The names are llama-server's (15 §6).
`models.template_caps` answers another question, what a manager should know of a file, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framework.chat.template_limits import TemplateError

Render = Callable[..., str]
Message = dict[str, Any]

_WORD = "NeedleText"
_USER: Message = {"role": "user", "content": "hello"}
_TOOL = {
    "type": "function",
    "function": {
        "name": "needle_tool",
        "description": "needle",
        "parameters": {
            "type": "object",
            "properties": {"needle_key": {"type": "string", "description": "needle"}},
            "required": ["needle_key"],
        },
    },
}


def probe_capabilities(source: str, render: Render) -> Mapping[str, bool]:
    """Each capability by its name in `chat_template_caps`."""

    def shown(messages: list[Message], **options: Any) -> str:
        try:
            return render(messages, **options)
        except TemplateError:
            return ""

    typed = _finds_parts(shown)
    plain = _WORD in shown([{"role": "user", "content": _WORD}])
    wrap = (lambda text: [{"type": "text", "text": text}]) if typed and not plain else (lambda text: text)
    user = {"role": "user", "content": wrap("hello")}
    objects, texts = (_shows_call(shown, user, wrap, form) for form in ({"needle_key": _WORD}, _AS_TEXT))
    return {
        "supports_object_arguments": objects,
        "supports_parallel_tool_calls": (objects or texts) and _shows_two_calls(shown, user, objects),
        "supports_preserve_reasoning": "reasoning_content" in source and _keeps_reasoning(shown, user, wrap),
        "supports_string_content": plain,
        "supports_system_role": _WORD in shown([{"role": "system", "content": wrap(_WORD)}, user]),
        "supports_tool_calls": objects or texts,
        "supports_tools": "needle_tool" in shown([user], tools=[_TOOL]),
        "supports_typed_content": typed,
    }


_AS_TEXT = '{"needle_key": "' + _WORD + '"}'


def _finds_parts(shown: Render) -> bool:
    """Whether it takes the text out of parts, instead of writing the list as Python would."""
    text = shown([{"role": "user", "content": [{"type": "text", "text": _WORD}]}])
    return _WORD in text and "'text'" not in text and '"text"' not in text


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {"id": "call00001", "type": "function", "function": {"name": name, "arguments": arguments}}


def _calling(*calls: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def _shows_call(shown: Render, user: Message, wrap: Callable[[str], Any], arguments: Any) -> bool:
    """Whether arguments in this form come out as JSON or as something of the template's own."""
    message = {**_calling(_call("needle_tool", arguments)), "content": wrap("")}
    text = shown([user, message, _USER | {"content": wrap("hello")}], tools=[_TOOL])
    called = text.replace(shown([user], tools=[_TOOL], add_generation_prompt=False), "")
    return _WORD in called and "'needle_key'" not in called and '\\"needle_key\\"' not in called


def _shows_two_calls(shown: Render, user: Message, objects: bool) -> bool:
    arguments: Any = {"needle_key": _WORD} if objects else _AS_TEXT
    text = shown([user, _calling(_call("first_needle", arguments), _call("second_needle", arguments)), user])
    return "first_needle" in text and "second_needle" in text


def _keeps_reasoning(shown: Render, user: Message, wrap: Callable[[str], Any]) -> bool:
    message = {"role": "assistant", "content": wrap("hi"), "reasoning_content": _WORD}
    return _WORD in shown([user, message, user])
