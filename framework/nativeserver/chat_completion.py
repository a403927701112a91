"""`/v1/chat/completions` (12 §8, 15 §5-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.chat.reply import ParsedReply
from framework.nativeserver.chat_run import ChatRun, ReplyStream, run_chat
from framework.nativeserver.chat_shapes import ROLE_DELTA, delta_json, message_json
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event
from framework.nativeserver.native_completion import NativeFlavour, progress_json
from framework.nativeserver.oai_completion import finish_reason
from framework.nativeserver.probabilities import records_json
from framework.nativeserver.services import services_of
from framework.nativeserver.timings_shape import timings_json
from framework.nativeserver.transport import read_json
from framework.nativeserver.usage import engine_report, usage_json


@dataclass
class _Choice:
    """A choice that is streamed."""

    stream: ReplyStream
    has_role: bool = False
    records: list[Any] = field(default_factory=list)
    """Probabilities of tokens whose text is still held back."""


class ChatFlavour:
    """Shapes of chat completions."""

    sends_done = True

    def __init__(self, run: ChatRun) -> None:
        self._run = run
        self._choices: dict[int, _Choice] = {}
        self._finals: list[Result] = []

    def answer(self, finals: Sequence[Result]) -> Any:
        """One object with all choices."""
        run = self._run
        return {
            "choices": [self._whole_choice(final, run.reply_of(final)) for final in finals],
            **self._head(),
            "object": "chat.completion",
            "usage": usage_json(finals),
            "id": run.completion_id,
            **self._extras(finals[0]),
            "timings": timings_json(finals[0]),
        }

    def events(self, result: Result) -> list[Event]:
        """The role with the first token, then what each result adds, then the reason of the end."""
        choice = self._choices.setdefault(result.index, _Choice(ReplyStream(self._run)))
        if result.kind == "partial" and result.is_progress:
            return [Event(self._progress(result))]
        chunks = []
        if not choice.has_role:
            choice.has_role = True
            chunks.append(self._chunk(result.index, ROLE_DELTA))
        chunks += self._delta_chunks(choice, result)
        if result.kind != "partial":
            self._finals.append(result)
            chunks.append(self._last_chunk(choice, result))
        return [Event(chunk) for chunk in chunks]

    def closing(self) -> list[Event]:
        """The usage of all choices, when it was asked for."""
        if not self._run.wishes.include_usage or not self._finals:
            return []
        finals = sorted(self._finals, key=lambda final: final.index)
        chunk = self._envelope([])
        return [Event({**chunk, "usage": usage_json(finals), "timings": timings_json(finals[0])})]

    def error(self, error: ApiError) -> Event:
        """The envelope."""
        return Event(error.envelope())

    def _head(self) -> dict[str, Any]:
        services = self._run.services
        return {
            "created": self._run.created,
            "model": services.model_name,
            "system_fingerprint": services.fingerprint,
        }

    def _whole_choice(self, final: Result, reply: ParsedReply) -> dict[str, Any]:
        choice = {
            "finish_reason": finish_reason(final.stop, has_calls=bool(reply.tool_calls)),
            "index": final.index,
            "message": message_json(reply),
        }
        if self._run.params.n_probs > 0:
            choice["logprobs"] = self._logprobs(final.records)
        return choice

    def _logprobs(self, records: Sequence[Any]) -> dict[str, Any]:
        return {"content": records_json(records, post_sampling=self._run.params.post_sampling_probs)}

    def _envelope(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        head = self._head()
        return {
            "choices": choices,
            "created": head["created"],
            "id": self._run.completion_id,
            "model": head["model"],
            "system_fingerprint": head["system_fingerprint"],
            "object": "chat.completion.chunk",
        }

    def _chunk(
        self, index: int, delta: dict[str, Any], records: Sequence[Any] = (), reason: str | None = None
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"finish_reason": reason, "index": index, "delta": delta}
        if records:
            choice["logprobs"] = self._logprobs(records)
        return self._envelope([choice])

    def _progress(self, result: Result) -> dict[str, Any]:
        """How far the prompt is; a chunk with the role, as if the reply began."""
        chunk = self._chunk(result.index, ROLE_DELTA)
        if result.has_timings:
            chunk["timings"] = timings_json(result)
        return {**chunk, "prompt_progress": progress_json(result)}

    def _delta_chunks(self, choice: _Choice, result: Result) -> list[dict[str, Any]]:
        choice.records += result.records
        chunks = []
        for delta in choice.stream.feed(result):
            call_id = choice.stream.call_id(delta) if delta.call_name else ""
            chunks.append(self._chunk(result.index, delta_json(delta, call_id), choice.records))
            choice.records = []
        if chunks and result.has_timings and result.kind == "partial":
            chunks[-1]["timings"] = timings_json(result)
        return chunks

    def _last_chunk(self, choice: _Choice, final: Result) -> dict[str, Any]:
        reason = finish_reason(final.stop, has_calls=choice.stream.has_calls)
        chunk = self._chunk(final.index, {}, choice.records, reason)
        if not self._run.wishes.include_usage:
            chunk["timings"] = timings_json(final)
        return {**chunk, **self._extras(final)}

    def _extras(self, final: Result) -> dict[str, Any]:
        """What only clients see that asked for it (12 §6.5)."""
        run, extras = self._run, {}
        if run.wishes.verbose:
            native = NativeFlavour(
                run.services,
                run.params,
                [run.prompt_text],
                n_choices=run.wishes.n_choices,
                ignored_type=run.wishes.ignored_type,
            )
            verbose = native.final(final, streamed=run.params.stream)
            verbose["generation_settings"] |= run.chat_settings
            extras["__verbose"] = verbose
        if run.wishes.engine_report:
            extras["engine_report"] = engine_report(final, run.wishes.ignored_type)
        return extras


async def endpoint(request: Request) -> Response:
    """POST `/v1/chat/completions`."""
    body = await read_json(request)
    return await run_chat(request, services_of(request), body, ChatFlavour)
