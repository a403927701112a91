"""Runs the tasks of one generating request and answers it in a flavour (12 §4).

Called by every route that generates. One task for each input and choice, all handed to the engine at once;
the answer is one object, or a stream of events. A client that goes away ends its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import Submission, raise_error
from framework.nativeserver.client_watch import ClientWatch
from framework.nativeserver.constraint_fields import reasoning_texts
from framework.nativeserver.core import Result, Task
from framework.nativeserver.errors import ApiError
from framework.nativeserver.events import Flavour
from framework.nativeserver.off_loop import LARGE, off_loop_if
from framework.nativeserver.services import Services
from framework.nativeserver.streaming import EventStream
from framework.nativeserver.transport import JsonResponse

MAX_TASKS = 1024
"""Inputs times choices of one generating request."""
MAX_RECORDS = 2_000_000
"""Probabilities in an answer that is not streamed: all of them are in memory at once, as text too."""
MAX_SHARED_BYTES = 16 * 1024 * 1024
"""Grammar, stop strings and the like of all tasks of a request: each has its copy, and native answers show it
once for each. As much as waits for a slow client of a stream."""
ANSWER_BYTES = 2048
"""Of an answer without its texts, roughly."""
TOKEN_BYTES = 4
"""Of a token's text, on average."""
ENTRY_BYTES = 32
"""What an entry of a list takes beside its text: names of members, quotes, a number."""


async def run(
    request: Request,
    services: Services,
    *,
    inputs: list[list[int]],
    params: Any,
    flavour: Flavour,
    completion_id: str,
    stream: bool,
    ping_interval_s: int,
    n_choices: int = 1,
    kind: str = "completion",
    id_slot: int = -1,
) -> Response:
    """The answer to the request. Raises ApiError for what is known before it begins, and ClientGone."""
    await services.bridge.ready_or_wake()
    tasks = make_tasks(
        services,
        inputs=inputs,
        params=params,
        n_choices=n_choices,
        kind=kind,
        id_slot=id_slot,
        completion_id=completion_id,
    )
    if not stream:
        refuse_many_records(services, params, len(tasks))
        finals = await collect(request, services, tasks)
        repeated = n_choices * TOKEN_BYTES * sum(map(len, inputs)) + len(tasks) * shared_bytes(params)
        return await _answer(flavour, finals, repeated)
    return await _stream(request, services.bridge.submit(tasks), flavour, ping_interval_s)


def make_tasks(
    services: Services,
    *,
    inputs: Sequence[list[int]],
    params: Any,
    n_choices: int,
    kind: str,
    id_slot: int,
    completion_id: str,
) -> list[Task]:
    """A parent for each input, each followed by its further choices (10 §15.1)."""
    n_tasks = len(inputs) * n_choices
    if n_tasks > MAX_TASKS:
        raise ApiError(
            "invalid_request",
            f"{len(inputs)} prompts with {n_choices} choices each; one request may have {MAX_TASKS} together",
        )
    if n_tasks * shared_bytes(params) > MAX_SHARED_BYTES:
        raise ApiError(
            "invalid_request",
            "Grammar, stop strings and biases are too large for that many prompts; send them one by one",
        )
    tasks: list[Task] = []
    for tokens in inputs:
        parent = len(tasks)
        for choice in range(n_choices):
            task = services.bridge.new_task()
            task.kind, task.index, task.tokens, task.params = kind, len(tasks), tokens, params
            task.completion_id = completion_id
            if choice == 0:
                task.id_slot = id_slot
                task.children = list(range(parent + 1, parent + n_choices))
            else:
                task.parent = parent
            tasks.append(task)
    return tasks


def shared_bytes(params: Any) -> int:
    """Size of what every task of a request has a copy of, and its answer may show, roughly."""
    sampling = params.sampling
    texts = (
        sampling.grammar,
        *params.stop,
        *(trigger.value for trigger in sampling.grammar_triggers),
        *sampling.dry_sequence_breakers,
        *sampling.samplers,
        *reasoning_texts(sampling.reasoning),
    )
    n_entries = len(texts) + len(sampling.logit_bias) + len(sampling.preserved_tokens)
    return sum(map(len, texts)) + ENTRY_BYTES * n_entries


def refuse_many_records(services: Services, params: Any, n_tasks: int) -> None:
    """Raises ApiError when an answer in one piece could hold more probabilities than memory should."""
    n_ctx = services.bridge.facts.n_ctx_slot
    n_tokens = min(params.n_predict, n_ctx) if params.n_predict >= 0 else n_ctx
    if params.n_probs * n_tokens * n_tasks > MAX_RECORDS:
        raise ApiError(
            "invalid_request",
            f"{params.n_probs} probabilities for each of {n_tokens} tokens in {n_tasks} answers are more than"
            f" {MAX_RECORDS}; set stream, or ask for fewer with n_probs, logprobs or n_predict",
        )


async def collect(request: Request, services: Services, tasks: Sequence[Task]) -> list[Result]:
    """The last result of every task, in task order.

    Raises ApiError for the first error, and ClientGone; the other tasks are cancelled then.
    """
    submission = services.bridge.submit(tasks)
    watch = ClientWatch(request.receive)
    try:
        return await watch.race(_finals(submission))
    finally:
        submission.cancel()
        watch.close()


async def _finals(submission: Submission) -> list[Result]:
    finals: dict[int, Result] = {}
    while len(finals) < len(submission.ids):
        result = await submission.next()
        if result is None:
            raise ApiError("unavailable", "The engine has stopped")
        if result.kind == "partial":
            continue
        raise_error(result)
        finals[result.index] = result
    return [finals[index] for index in sorted(finals)]


async def _answer(flavour: Flavour, finals: list[Result], repeated_bytes: int) -> Response:
    """The answer as JSON; made beside the event loop when it is large. It may repeat what was asked."""
    size = sum(len(final.text) + sum(len(record.top) + 1 for record in final.records) for final in finals)
    size += repeated_bytes + len(finals) * ANSWER_BYTES
    return await off_loop_if(size > LARGE, lambda: JsonResponse(flavour.answer(finals)))


async def _stream(
    request: Request, submission: Submission, flavour: Flavour, ping_interval_s: int
) -> Response:
    """Waits for the first result, so that an error at once is an answer with its own status (12 §4.4)."""
    interval = float(ping_interval_s) if ping_interval_s > 0 else None
    watch = ClientWatch(request.receive)
    answer: Response | None = None
    try:
        first = await watch.race(submission.next(interval))
        if first is not None:
            raise_error(first)
        answer = EventStream(submission, flavour, watch, first, interval)
    finally:
        if answer is None:
            submission.cancel()
            watch.close()
    return answer
