"""A chat body becomes tasks of the engine; what its flavours share of one request (12 §8.2).

Called by chat_completion, responses and anthropic, whose bodies are chat bodies by then.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.chat.deltas import Delta, ReplyDeltas
from framework.chat.formats import ReadOptions
from framework.chat.reply import ParsedReply, ToolCall, parse_reply
from framework.nativeserver import driver
from framework.nativeserver.chat_request import ChatPrepared, prepare_off_loop
from framework.nativeserver.completion_ids import new_completion_id
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Flavour
from framework.nativeserver.fields import RequestFields, read_generation_off_loop, read_request
from framework.nativeserver.native_completion import prompt_texts
from framework.nativeserver.oai_completion import now_s
from framework.nativeserver.prompt_input import tokenize_prompt
from framework.nativeserver.services import Services
from framework.nativeserver.tool_ids import new_call_id
from framework.nativeserver.transport import read_text


@dataclass(frozen=True)
class ChatRun:
    """One chat request on its way."""

    services: Services
    prepared: ChatPrepared
    params: Any
    """GenerationParams."""
    wishes: RequestFields
    completion_id: str
    created: int
    """Unix seconds."""
    tools: Sequence[Mapping[str, Any]] = ()
    prompt_text: str = field(default="", repr=False)
    """As the engine reads it; for `verbose` alone."""

    @property
    def read_options(self) -> ReadOptions:
        """How its replies are read."""
        return ReadOptions(
            parse_tools=self.prepared.parse_tools,
            # The formats other than `none` mean the same, as with llama-server.
            splits_reasoning=self.prepared.reasoning_format != "none",
            starts_in_reasoning=self.prepared.starts_in_reasoning,
            tools=self.tools,
        )

    @property
    def chat_settings(self) -> dict[str, str]:
        """How replies are read, among the settings that `verbose` shows."""
        return {
            "chat_format": self.prepared.format.name,
            "reasoning_format": self.prepared.reasoning_format,
            "generation_prompt": self.prepared.generation_prompt,
        }

    def reply_of(self, final: Result) -> ParsedReply:
        """The whole reply of a choice that was not streamed; every call has an id."""
        text = self.prepared.begun + read_text(final.text)
        reply = parse_reply(text, self.prepared.format, self.read_options)
        calls = tuple(
            ToolCall(call.name, call.arguments, call.call_id or self.new_call_id())
            for call in reply.tool_calls
        )
        return ParsedReply(reply.content, reply.reasoning, calls)

    def new_call_id(self) -> str:
        """In the form that the model's template takes."""
        return new_call_id(self.prepared.format.call_id_length)


class ReplyStream:
    """The reply of one choice as it arrives."""

    def __init__(self, run: ChatRun) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._deltas = ReplyDeltas(run.prepared.format, run.read_options)
        self._run = run
        self._begun = run.prepared.begun
        self._call_ids: list[str] = []

    def feed(self, result: Result) -> list[Delta]:
        """What a partial brought, or the final; every call has an id."""
        is_last = result.kind != "partial"
        text = self._begun + self._decoder.decode(result.text, final=is_last)
        self._begun = ""
        deltas = self._deltas.feed(text)
        if is_last:
            deltas += self._deltas.finish()
        for delta in deltas:
            if delta.call_name:
                self._call_ids.append(delta.call_id or self._run.new_call_id())
        return deltas

    def call_id(self, delta: Delta) -> str:
        """The id of the call that a delta is about."""
        return self._call_ids[delta.call_index]

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return bool(self._call_ids)

    def so_far(self) -> ParsedReply:
        """Everything that was told, with the same ids."""
        reply = self._deltas.so_far()
        calls = (
            ToolCall(call.name, call.arguments, call_id)
            for call, call_id in zip(reply.tool_calls, self._call_ids, strict=True)
        )
        return ParsedReply(reply.content, reply.reasoning, tuple(calls))


async def run_chat(
    request: Request,
    services: Services,
    body: Mapping[str, Any],
    make_flavour: Callable[[ChatRun], Flavour],
    *,
    one_choice: bool = False,
) -> Response:
    """The answer to a chat body. Raises ApiError for what is wrong with it.

    `one_choice`: the flavour has no form for several.
    """
    await services.bridge.ready_or_wake()
    prepared = await prepare_off_loop(body, services)
    wishes = read_request(prepared.fields, services)
    if one_choice and wishes.n_choices != 1:
        raise ApiError("invalid_request", "Field 'n': this interface has one choice only")
    params = await read_generation_off_loop(prepared.fields, services)
    prepared.apply(params)
    tokens = await tokenize_prompt(request.receive, prepared.prompt, services.bridge)
    run = ChatRun(
        services,
        prepared,
        params,
        wishes,
        new_completion_id(),
        now_s(),
        tools=_tools(body),
        prompt_text=(await prompt_texts(services, [tokens]))[0] if wishes.verbose else "",
    )
    return await driver.run(
        request,
        services,
        inputs=[tokens],
        params=params,
        flavour=make_flavour(run),
        n_choices=wishes.n_choices,
        completion_id=run.completion_id,
        stream=params.stream,
        id_slot=wishes.id_slot,
        ping_interval_s=wishes.ping_interval_s,
    )


def _tools(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The functions, which `prepare` has checked."""
    return tuple(body.get("tools") or ())
