"""`/completion`: llama-server's own interface (12 §6, 15 §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver import driver
from framework.nativeserver.completion_ids import new_completion_id
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Event
from framework.nativeserver.fields import read_generation_off_loop, read_request
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.probabilities import records_json
from framework.nativeserver.prompt_input import read_inputs
from framework.nativeserver.sampling_fields import ANY_SEED
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.speculation_shape import loop_guard_json, speculation_json
from framework.nativeserver.task_shapes import SEED_BITS, long_params
from framework.nativeserver.timings_shape import timings_json
from framework.nativeserver.transport import read_json, read_text


@dataclass
class NativeFlavour:
    """Shapes of `/completion` and `/infill`."""

    services: Services
    params: Any
    """GenerationParams of the request."""
    prompts: Sequence[str]
    """Text of each input."""
    n_choices: int = 1
    ignored_type: str = ""
    """As of RequestFields."""
    response_fields: tuple[str, ...] = ()
    sends_done: bool = False

    def answer(self, finals: Sequence[Result]) -> Any:
        """One object, or a list when there are several inputs or choices."""
        answers = [self._picked(self.final(final, streamed=False)) for final in finals]
        return answers[0] if len(answers) == 1 else answers

    def events(self, result: Result) -> list[Event]:
        """One event for each result."""
        if result.kind == "partial":
            return [Event(self.partial(result))]
        return [Event(self._picked(self.final(result, streamed=True)))]

    def closing(self) -> list[Event]:
        """Nothing: the last result says that it is the last."""
        return []

    def error(self, error: ApiError) -> Event:
        """The envelope."""
        return Event(error.envelope())

    def partial(self, result: Result) -> dict[str, Any]:
        """Text as it is generated, or how far the prompt is."""
        shape: dict[str, Any] = {
            "index": result.index,
            "content": read_text(result.text),
            "tokens": list(result.tokens),
            "stop": False,
            "id_slot": result.id_slot,
            "tokens_predicted": result.n_decoded,
            "tokens_evaluated": result.n_prompt_tokens,
        }
        if result.has_timings:
            shape["timings"] = timings_json(result)
        if result.is_progress:
            shape["prompt_progress"] = progress_json(result)
        if result.records:
            shape["completion_probabilities"] = self._records(result)
        return shape

    def final(self, result: Result, *, streamed: bool) -> dict[str, Any]:
        """The end of a choice, with all that was asked for it."""
        guard = result.loop_guard
        shape = {
            "index": result.index,
            "content": read_text(result.text),
            "tokens": list(result.tokens),
            "id_slot": result.id_slot,
            "stop": True,
            "model": self.services.model_name,
            "tokens_predicted": result.n_decoded,
            "tokens_evaluated": result.n_prompt_tokens,
            "generation_settings": self._settings(result.index % self.n_choices),
            "prompt": self.prompts[result.index // self.n_choices],
            "has_new_line": result.has_new_line,
            "truncated": result.truncated,
            "stop_type": result.stop,
            "stop_detail": result.stop_detail,
            "stopping_word": read_text(result.stopping_word),
            "tokens_cached": result.n_tokens_cached,
            "timings": timings_json(result),
            "reasoning_output_tokens": result.n_reasoning_tokens,
            "visible_output_tokens": guard.visible_tokens,
            "loop_guard_triggered": guard.triggered,
            "loop_guard_action": guard.action,
            "loop_guard_reason": guard.reason,
            "speculation": speculation_json(result.speculation, self.ignored_type),
            "loop_guard": loop_guard_json(guard),
        }
        if not streamed and self.params.n_probs > 0:
            shape["completion_probabilities"] = self._records(result)
        return shape

    def _settings(self, choice: int) -> dict[str, Any]:
        services = self.services
        shown = long_params(
            self.params, n_ctx=services.bridge.facts.n_ctx_slot, drafters=services.options.speculation_types
        )
        if choice and self.params.sampling.seed != ANY_SEED:
            # Every choice has a start value of its own (10 §23.7).
            shown["seed"] = (self.params.sampling.seed + choice) & SEED_BITS
        return shown

    def _records(self, result: Result) -> list[dict[str, Any]]:
        return records_json(result.records, post_sampling=self.params.post_sampling_probs)

    def _picked(self, shape: dict[str, Any]) -> dict[str, Any]:
        return picked(shape, self.response_fields) if self.response_fields else shape


def progress_json(result: Result) -> dict[str, Any]:
    """`prompt_progress`: tokens, and milliseconds since the prompt was begun."""
    progress = result.progress
    return {
        "total": progress.total,
        "cache": progress.cache,
        "processed": progress.processed,
        "time_ms": progress.time_ms,
    }


def picked(shape: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The named members; `a/b` is member `b` of `a`, under that whole name. Unknown names are left out."""
    found: dict[str, Any] = {}
    for name in names:
        value: Any = shape
        for part in name.split("/"):
            if not isinstance(value, Mapping) or part not in value:
                break
            value = value[part]
        else:
            found[name] = value
    return found


async def prompt_texts(services: Services, inputs: Sequence[Sequence[int]]) -> list[str]:
    """What the inputs say, special tokens too. To be asked before they run: then the model is in memory."""
    return await off_loop_if(
        is_large(inputs), lambda: [read_text(services.bridge.detokenize(tokens)) for tokens in inputs]
    )


async def run_native(
    request: Request,
    services: Services,
    body: Mapping[str, Any],
    inputs: list[list[int]],
    *,
    params: Any,
    kind: str = "completion",
) -> Response:
    """The answer in this flavour; `infill` has it too."""
    wishes = read_request(body, services)
    flavour = NativeFlavour(
        services,
        params,
        await prompt_texts(services, inputs),
        n_choices=wishes.n_choices,
        ignored_type=wishes.ignored_type,
        response_fields=wishes.response_fields,
    )
    return await driver.run(
        request,
        services,
        inputs=inputs,
        params=params,
        flavour=flavour,
        n_choices=wishes.n_choices,
        completion_id=new_completion_id(),
        stream=params.stream,
        kind=kind,
        id_slot=wishes.id_slot,
        ping_interval_s=wishes.ping_interval_s,
    )


async def endpoint(request: Request) -> Response:
    """POST `/completion`, `/completions`."""
    services = services_of(request)
    body = await read_json(request)
    await services.bridge.ready_or_wake()
    if "prompt" not in body:
        raise ApiError("invalid_request", '"prompt" is missing')
    params = await read_generation_off_loop(body, services)
    inputs = await read_inputs(request.receive, body["prompt"], services.bridge, most=driver.MAX_TASKS)
    return await run_native(request, services, body, inputs, params=params)
