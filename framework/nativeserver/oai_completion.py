"""`/v1/completions`: OpenAI's text completions (12 §7, 15 §5-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver import driver
from framework.nativeserver.completion_ids import new_completion_id
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event
from framework.nativeserver.field_table import wrong_type
from framework.nativeserver.fields import RequestFields, read_generation_off_loop, read_request
from framework.nativeserver.native_completion import NativeFlavour, progress_json, prompt_texts
from framework.nativeserver.probabilities import records_json
from framework.nativeserver.prompt_input import read_inputs
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.timings_shape import timings_json
from framework.nativeserver.transport import read_json, read_text
from framework.nativeserver.usage import engine_report, usage_json


def now_s() -> int:
    """Unix seconds, for `created`."""
    return int(datetime.now(UTC).timestamp())


def finish_reason(stop: str, *, has_calls: bool = False) -> str:
    """Why a choice ended, in OpenAI's words (12 §7.2, §8.5)."""
    if stop not in ("word", "eos"):
        return "length"
    return "tool_calls" if has_calls else "stop"


@dataclass
class OaiCompletionFlavour:
    """Shapes of `/v1/completions`."""

    services: Services
    params: Any
    """GenerationParams of the request."""
    n_inputs: int
    wishes: RequestFields
    completion_id: str
    prompts: Sequence[str] = ()
    """Text of each input; needed for `verbose` alone."""
    sends_done: bool = True
    created: int = field(default_factory=now_s)
    _finals: list[Result] = field(default_factory=list)

    def answer(self, finals: Sequence[Result]) -> Any:
        """One object with all choices."""
        usage = usage_json(finals, n_inputs=self.n_inputs)
        return self._shape(
            [self._choice(final, finish_reason(final.stop)) for final in finals], usage, finals[0]
        )

    def events(self, result: Result) -> list[Event]:
        """A chunk for each result; the last chunk of a choice tells why it ended."""
        if result.kind == "partial":
            return [Event(self._partial(result))]
        self._finals.append(result)
        # A client that asks for the usage gets it once, at the very end; others with each choice.
        usage = None if self.wishes.include_usage else usage_json([result])
        return [Event(self._shape([self._choice(result, finish_reason(result.stop))], usage, result))]

    def closing(self) -> list[Event]:
        """The usage of all choices, in a chunk without any."""
        if not self.wishes.include_usage:
            return []
        finals = sorted(self._finals, key=lambda final: final.index)
        usage = usage_json(finals, n_inputs=self.n_inputs)
        return [Event({"choices": [], **self._head(), "usage": usage, "id": self.completion_id})]

    def error(self, error: ApiError) -> Event:
        """The envelope."""
        return Event(error.envelope())

    def _head(self) -> dict[str, Any]:
        return {
            "created": self.created,
            "model": self.services.model_name,
            "system_fingerprint": self.services.fingerprint,
            "object": "text_completion",
        }

    def _choice(self, result: Result, reason: str | None) -> dict[str, Any]:
        records = records_json(result.records, post_sampling=self.params.post_sampling_probs)
        return {
            "text": read_text(result.text),
            "index": result.index,
            "logprobs": {"content": records} if records else None,
            "finish_reason": reason,
        }

    def _partial(self, result: Result) -> dict[str, Any]:
        shape = {"choices": [self._choice(result, None)], **self._head(), "id": self.completion_id}
        if result.has_timings:
            shape["timings"] = timings_json(result)
        if result.is_progress:
            shape["prompt_progress"] = progress_json(result)
        return shape

    def _shape(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, final: Result
    ) -> dict[str, Any]:
        shape = {"choices": choices, **self._head()}
        if usage is not None:
            shape["usage"] = usage
        shape |= {"id": self.completion_id, "timings": timings_json(final)}
        if self.wishes.verbose:
            shape["__verbose"] = self._verbose(final)
        if self.wishes.engine_report:
            shape["engine_report"] = engine_report(final, self.wishes.ignored_type)
        return shape

    def _verbose(self, final: Result) -> dict[str, Any]:
        native = NativeFlavour(
            self.services,
            self.params,
            self.prompts,
            n_choices=self.wishes.n_choices,
            ignored_type=self.wishes.ignored_type,
        )
        return native.final(final, streamed=self.params.stream)


def refuse_unsupported(body: Mapping[str, Any], n_choices: int) -> None:
    """Raises ApiError for wishes that would change the answer and that nothing here fulfils (12 §7.4)."""
    echo, suffix, best_of = body.get("echo"), body.get("suffix"), body.get("best_of")
    if echo is not None and not isinstance(echo, bool):
        raise wrong_type("echo", "boolean", echo)
    if echo:
        raise ApiError(
            "invalid_request", "Field 'echo': true is not supported; put the prompt before the text"
        )
    if suffix is not None and not isinstance(suffix, str):
        raise wrong_type("suffix", "string", suffix)
    if suffix:
        raise ApiError("invalid_request", "Field 'suffix': is not supported; use /infill")
    if best_of is not None and best_of != n_choices:
        raise ApiError("invalid_request", f"Field 'best_of': must equal n ({n_choices}), or be left out")


async def endpoint(request: Request) -> Response:
    """POST `/v1/completions`."""
    services = services_of(request)
    body = await read_json(request)
    await services.bridge.ready_or_wake()
    if "prompt" not in body:
        raise ApiError("invalid_request", '"prompt" is missing')
    wishes = read_request(body, services)
    refuse_unsupported(body, wishes.n_choices)
    params = await read_generation_off_loop(body, services)
    inputs = await read_inputs(request.receive, body["prompt"], services.bridge, most=driver.MAX_TASKS)
    completion_id = new_completion_id()
    flavour = OaiCompletionFlavour(
        services,
        params,
        len(inputs),
        wishes,
        completion_id,
        prompts=await prompt_texts(services, inputs) if wishes.verbose else (),
    )
    return await driver.run(
        request,
        services,
        inputs=inputs,
        params=params,
        flavour=flavour,
        n_choices=wishes.n_choices,
        completion_id=completion_id,
        stream=params.stream,
        id_slot=wishes.id_slot,
        ping_interval_s=wishes.ping_interval_s,
    )
