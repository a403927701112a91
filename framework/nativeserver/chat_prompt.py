"""The text of a chat's prompt: the conversation, then the start of the reply or the reply that goes on.

Called by nativeserver.chat_request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from framework.chat.formats import ReplyFormat
from framework.chat.messages import Message, MessageError, read_messages, text_of
from framework.chat.template import ChatTemplate
from framework.nativeserver.chat_fields import ChatFields
from framework.nativeserver.options import ChatOptions


@dataclass(frozen=True)
class ChatPrompt:
    """What was rendered."""

    text: str
    generation_prompt: str
    """What of it belongs to the reply."""
    starts_in_reasoning: bool
    reasoning_is_over: bool
    """The reply begins behind reasoning that has ended, or was left out."""
    begun: str = ""
    """What the client wrote of the reply, as a reader of replies takes it. Answers begin with it."""


def make_prompt(
    wanted: ChatFields,
    template: ChatTemplate,
    form: ReplyFormat,
    variables: Mapping[str, Any],
    options: ChatOptions,
) -> ChatPrompt:
    """Raises MessageError and TemplateError."""
    messages = read_messages(wanted.messages, template.caps)
    continued = _continued(messages, wanted, options)
    if continued is not None:
        messages = messages[:-1]
    if "reasoning_content" not in template.source and "thinking" in template.source:
        messages = [_with_thinking(message) for message in messages]

    def rendered(*, adds: bool) -> str:
        return template.render(
            messages, tools=wanted.tools or None, add_generation_prompt=adds, extra=variables
        )

    if continued is None and not wanted.add_generation_prompt:
        return _prompt(rendered(adds=False), "", form)
    whole, before = rendered(adds=True), rendered(adds=False)
    shared = len(before) if whole.startswith(before) else _n_shared(whole, before)
    opening = whole[shared:]
    if continued is None:
        return _prompt(whole[:shared], opening, form)
    prompt = _prompt(whole[:shared], _with_reply(opening, continued, form), form)
    return replace(prompt, begun=_begun(continued, form, is_open=prompt.starts_in_reasoning))


def _continued(messages: list[Message], wanted: ChatFields, options: ChatOptions) -> Message | None:
    """The last message, when the reply goes on with it."""
    last = messages[-1] if messages else None
    is_reply = last is not None and last["role"] == "assistant" and not last.get("tool_calls")
    if wanted.continue_final_message and not is_reply:
        raise MessageError("continue_final_message needs a last message of the assistant without tool calls")
    if not is_reply or not (options.prefill_assistant or wanted.continue_final_message):
        return None
    if len(messages) > 1 and messages[-2]["role"] == "assistant":
        raise MessageError("Cannot have 2 or more assistant messages at the end of the list.")
    return last


def _with_reply(opening: str, message: Message, form: ReplyFormat) -> str:
    """The start of a reply and what the client wrote of it. Reasoning without a text after it stays open."""
    reasoning, text = message.get("reasoning_content", ""), text_of(message["content"])
    start, end = form.reasoning_start, form.reasoning_end
    if not end or (not reasoning and not _is_open(opening, form)):
        return opening + text
    if _is_open(opening, form):
        opening = opening[: opening.rindex(start)]
    return f"{opening}{start}{reasoning}{end if text or not reasoning else ''}{text}"


def _begun(message: Message, form: ReplyFormat, *, is_open: bool) -> str:
    reasoning, text = message.get("reasoning_content", ""), text_of(message["content"])
    if not form.reasoning_end or not reasoning:
        return text
    return reasoning if is_open else f"{form.reasoning_start}{reasoning}{form.reasoning_end}{text}"


def _prompt(before: str, opening: str, form: ReplyFormat) -> ChatPrompt:
    is_open = _is_open(opening, form)
    is_over = bool(form.reasoning_end) and form.reasoning_end in opening and not is_open
    return ChatPrompt(before + opening, opening, is_open, is_over)


def _is_open(opening: str, form: ReplyFormat) -> bool:
    start, end = form.reasoning_start, form.reasoning_end
    return bool(start and end) and opening.rfind(start) > opening.rfind(end)


def _n_shared(one: str, other: str) -> int:
    """Characters that two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _with_thinking(message: Message) -> Message:
    """Some templates have another name for what was reasoned."""
    reasoning = message.get("reasoning_content")
    return message if reasoning is None else {**message, "thinking": reasoning}
