"""Calls that are forwarded whole: no stream, one JSON answer (08 §7.9). Called by handlers of routes."""

from __future__ import annotations

from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.generation import BuildBody, Job, run_whole
from framework.proxy.interrupt import Interrupted
from framework.proxy.model_choice import ModelChoice

OK = 200


async def forward_whole(
    exchange: Exchange,
    choice: ModelChoice,
    path: str,
    build: BuildBody,
    *,
    tells_model: bool = False,
    is_work: bool = False,
) -> None:
    """Send what `build` makes, and answer under the model name that the client asked for.

    `tells_model`: the answer of this route is an object, and says which model gave it. `is_work`: the model
    reads what it is sent, so that this is not free where the answer does not count it.
    """
    job = Job(exchange.services, exchange.request, choice, path, build)
    try:
        raw = await exchange.run(lambda: run_whole(job))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted
    answer = _parsed(raw)
    exchange.request.state.opened = is_work
    if isinstance(answer, dict):
        if isinstance(answer.get("usage"), dict):
            exchange.request.state.usages.append(answer["usage"])
        if tells_model or "model" in answer:
            answer["model"] = choice.asked
    elif tells_model:
        raise _no_answer()
    await exchange.answer.send_json(OK, orjson.dumps(answer))


def _parsed(raw: bytes) -> dict[str, Any] | list[Any]:
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _no_answer() from error
    if not isinstance(answer, dict | list):
        raise _no_answer()
    return answer


def _no_answer() -> ProxyError:
    return ProxyError("upstream_protocol_error", "The engine's answer is no JSON object and no list.")
