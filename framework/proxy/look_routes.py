"""What an instance says of itself: `/props`, `/slots`, `/lora-adapters` (08 §7.9, 12 §15-17).

Looking must not touch (cases MD-01): nothing is loaded, nothing kept from being unloaded, no lease is taken.
Folders of this machine stay here. Called by `routes`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson

from framework.proxy.engine_errors import engine_refusal
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange
from framework.proxy.upstream import UpstreamLost

OK = 200
PATHS_IN = ("model_path", "path")
"""Fields that hold the path of a file."""


async def props(exchange: Exchange) -> None:
    """How the model runs."""
    await _look(exchange, "/props")


async def slots(exchange: Exchange) -> None:
    """What its slots do."""
    wants_free = any(parse_qs(exchange.query).get("fail_on_no_slot", ()))
    await _look(exchange, "/slots?fail_on_no_slot=1" if wants_free else "/slots")


async def lora_adapters(exchange: Exchange) -> None:
    """Which adapters it runs with."""
    await _look(exchange, "/lora-adapters")


async def _look(exchange: Exchange, path: str) -> None:
    choice = exchange.choose_model(None)
    services = exchange.services
    seen = services.fleet.glance(choice.id)
    if seen is None:
        raise ProxyError(
            "model_not_loaded",
            f"Model {choice.id} is not loaded, and looking at it does not load it. Send it a request, or run "
            f"`paddock load {choice.id}`.",
        )
    timeout_s = services.limits.look_timeout_s
    try:
        status, raw = await services.upstream.get(seen.base_url + path, seen.headers, timeout_s=timeout_s)
    except UpstreamLost as lost:
        raise ProxyError("connection_lost", "The connection to the engine was lost.") from lost
    except TimeoutError as error:
        raise ProxyError(
            "connect_timeout",
            f"The engine did not answer within {timeout_s:g} s. It says nothing while it reads a prompt.",
        ) from error
    if status != OK:
        raise engine_refusal(status, raw, model=seen.request, headers=seen.headers)
    await exchange.answer.send_json(OK, orjson.dumps(_shown(_parsed(raw), choice.asked)))


def _parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProxyError("upstream_protocol_error", "The engine's answer is not JSON.") from error


def _shown(answer: Any, asked_model: str) -> Any:
    """The answer under the asked model name, with names of files where their paths stood."""
    if isinstance(answer, list):
        return [_shown(entry, asked_model) for entry in answer]
    if not isinstance(answer, dict):
        return answer
    names = {name: Path(answer[name]).name for name in PATHS_IN if isinstance(answer.get(name), str)}
    alias = {"model_alias": asked_model} if "model_alias" in answer else {}
    return {**answer, **names, **alias}
