"""`/v1/messages`: Anthropic's interface (12 §10, 15 §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.chat.partial_json import object_of
from framework.chat.reply import ParsedReply
from framework.nativeserver.anthropic_body import chat_body
from framework.nativeserver.anthropic_stream import BlockStream
from framework.nativeserver.apply_template import count_tokens as count_prompt
from framework.nativeserver.chat_run import ChatRun, run_chat
from framework.nativeserver.conversion import read_converted
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import JsonResponse, read_text
from framework.nativeserver.usage import engine_report


class MessagesFlavour:
    """Shapes of messages."""

    sends_done = False

    def __init__(self, run: ChatRun) -> None:
        self._run = run
        self._blocks = BlockStream(run)
        self._has_begun = False
        self._final: Result | None = None

    def answer(self, finals: Sequence[Result]) -> Any:
        """The whole message."""
        final = finals[0]
        reply = self._run.reply_of(final)
        return {
            **self._head(),
            "content": content_blocks(reply),
            "model": self._run.services.model_name,
            **_stop(final, has_calls=bool(reply.tool_calls)),
            "usage": {**_input_usage(final), "output_tokens": final.n_decoded},
            **self._report(final),
        }

    def events(self, result: Result) -> list[Event]:
        """The beginning, then what each result adds."""
        events = [] if self._has_begun else [self._start(result)]
        self._has_begun = True
        if result.kind == "partial" and result.is_progress:
            return events
        events += self._blocks.add(result)
        if result.kind != "partial":
            self._final = result
        return events

    def closing(self) -> list[Event]:
        """Why it ended."""
        if self._final is None:
            return []
        data = {
            "type": "message_delta",
            "delta": _stop(self._final, has_calls=self._blocks.has_calls),
            "usage": {"output_tokens": self._final.n_decoded},
            **self._report(self._final),
        }
        return [Event(data, "message_delta"), Event({"type": "message_stop"}, "message_stop")]

    def error(self, error: ApiError) -> Event:
        """An event of its own name."""
        return Event({"type": "error", **error.envelope()}, "error")

    def _head(self) -> dict[str, Any]:
        return {"id": self._run.completion_id, "type": "message", "role": "assistant"}

    def _start(self, result: Result) -> Event:
        message = {
            **self._head(),
            "content": [],
            "model": self._run.services.model_name,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_input_usage(result), "output_tokens": 0},
        }
        return Event({"type": "message_start", "message": message}, "message_start")

    def _report(self, final: Result) -> dict[str, Any]:
        wishes = self._run.wishes
        return {"engine_report": engine_report(final, wishes.ignored_type)} if wishes.engine_report else {}


def content_blocks(reply: ParsedReply) -> list[dict[str, Any]]:
    """Thinking, text and calls, in this order."""
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": ""})
    if reply.content:
        blocks.append({"type": "text", "text": reply.content})
    for call in reply.tool_calls:
        given = object_of(call.arguments)
        blocks.append({"type": "tool_use", "id": call.call_id, "name": call.name, "input": given})
    return blocks


def _stop(final: Result, *, has_calls: bool) -> dict[str, str | None]:
    """Why it ended (12 §10.3)."""
    word = read_text(final.stopping_word) if final.stop == "word" else None
    reason = {"word": "stop_sequence", "eos": "end_turn"}.get(final.stop, "max_tokens")
    return {"stop_reason": "tool_use" if has_calls else reason, "stop_sequence": word}


def _input_usage(result: Result) -> dict[str, int]:
    cached = result.n_prompt_cached
    return {"cache_read_input_tokens": cached, "input_tokens": result.n_prompt_tokens - cached}


async def endpoint(request: Request) -> Response:
    """POST `/v1/messages`."""
    body = await read_converted(request, chat_body)
    return await run_chat(request, services_of(request), body, MessagesFlavour, one_choice=True)


async def count_tokens(request: Request) -> Response:
    """POST `/v1/messages/count_tokens`."""
    body, services = await read_converted(request, chat_body), services_of(request)
    await services.bridge.ready_or_wake()
    return JsonResponse({"input_tokens": await count_prompt(request.receive, body, services)})
