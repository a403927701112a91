"""`/v1/embeddings`: forwarded whole, under the model name that the client asked for (08 §7.9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.generation import Job, run_whole
from framework.proxy.interrupt import Interrupted
from framework.proxy.request_body import whole_body
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

OK = 200
PATH = "/v1/embeddings"


async def embeddings(exchange: Exchange) -> None:
    """Answer with vectors, or with the engine's 501 where a model was not started for them."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        return whole_body(body, model_id=lease.model)

    job = Job(exchange.services, exchange.request, choice, PATH, build)

    try:
        raw = await exchange.run(lambda: run_whole(job))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted
    answer = _parsed(raw)
    if isinstance(answer.get("usage"), dict):
        exchange.request.state.usages.append(answer["usage"])
    await exchange.answer.send_json(OK, orjson.dumps({**answer, "model": choice.asked}))


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _no_object() from error
    if not isinstance(answer, dict):
        raise _no_object()
    return answer


def _no_object() -> ProxyError:
    return ProxyError("upstream_protocol_error", "The engine's answer is not a JSON object.")
