"""`/v1/responses`: OpenAI's newer interface, without storage (12 §9, 15 §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.apply_template import count_tokens as count_prompt
from framework.nativeserver.chat_run import ChatRun, run_chat
from framework.nativeserver.conversion import read_converted
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event
from framework.nativeserver.native_completion import progress_json
from framework.nativeserver.responses_body import chat_body
from framework.nativeserver.responses_items import (
    COMPLETED,
    IN_PROGRESS,
    incomplete_details,
    output_items,
    response_usage,
)
from framework.nativeserver.responses_stream import OutputStream
from framework.nativeserver.services import services_of
from framework.nativeserver.timings_shape import timings_json
from framework.nativeserver.tool_ids import new_item_id
from framework.nativeserver.transport import JsonResponse
from framework.nativeserver.usage import engine_report


class ResponsesFlavour:
    """Shapes of responses."""

    sends_done = False

    def __init__(self, run: ChatRun) -> None:
        self._run = run
        self._id = new_item_id("resp")
        self._output = OutputStream(run)
        self._has_begun = False
        self._n_sent = 0
        self._final: Result | None = None

    def answer(self, finals: Sequence[Result]) -> Any:
        """The finished response."""
        final = finals[0]
        items = output_items(self._run.reply_of(final))
        # Nothing is known of a reply before it ends, so both times are its end.
        return {"completed_at": self._run.created, **self._finished(final, items), **self._report(final)}

    def events(self, result: Result) -> list[Event]:
        """The beginning, then what each result adds to the output."""
        is_progress = result.kind == "partial" and result.is_progress
        events = [] if self._has_begun else [self._about("response.created")]
        if is_progress:
            events.append(self._about("response.in_progress", prompt_progress=progress_json(result)))
        elif not self._has_begun:
            events.append(self._about("response.in_progress"))
        self._has_begun = True
        if not is_progress:
            events += self._output.add(result)
        if result.kind != "partial":
            self._final = result
        return [self._numbered(event) for event in events]

    def closing(self) -> list[Event]:
        """The whole response once more."""
        if self._final is None:
            return []
        final = self._final
        data = {
            "type": "response.completed",
            "response": {**self._finished(final, self._output.items), **self._report(final)},
            "timings": timings_json(final),
        }
        return [self._numbered(Event(data, "response.completed"))]

    def error(self, error: ApiError) -> Event:
        """The envelope."""
        return Event(error.envelope())

    def _about(self, name: str, **more: Any) -> Event:
        """An event about the response as a whole."""
        response = {
            "id": self._id,
            "object": "response",
            "created_at": self._run.created,
            "status": IN_PROGRESS,
            "model": self._run.services.model_name,
            "output": [],
        }
        return Event({"type": name, "response": response, **more}, name)

    def _numbered(self, event: Event) -> Event:
        number, self._n_sent = self._n_sent, self._n_sent + 1
        return Event({**event.data, "sequence_number": number}, event.name)

    def _finished(self, final: Result, items: list[dict[str, Any]]) -> dict[str, Any]:
        # As llama-server says it; that a limit ended it stands in the details.
        return {
            "created_at": self._run.created,
            "id": self._id,
            "model": self._run.services.model_name,
            "object": "response",
            "output": items,
            "status": COMPLETED,
            "incomplete_details": incomplete_details(final),
            "usage": response_usage([final]),
        }

    def _report(self, final: Result) -> dict[str, Any]:
        wishes = self._run.wishes
        return {"engine_report": engine_report(final, wishes.ignored_type)} if wishes.engine_report else {}


async def endpoint(request: Request) -> Response:
    """POST `/v1/responses`."""
    body = await read_converted(request, chat_body)
    return await run_chat(request, services_of(request), body, ResponsesFlavour, one_choice=True)


async def count_tokens(request: Request) -> Response:
    """POST `/v1/responses/input_tokens`."""
    body, services = await read_converted(request, chat_body), services_of(request)
    await services.bridge.ready_or_wake()
    return JsonResponse(
        {
            "object": "response.input_tokens",
            "input_tokens": await count_prompt(request.receive, body, services),
        }
    )
