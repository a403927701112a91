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
    timeout_s = exchange.services.limits.look_timeout_s
    seen = await exchange.services.fleet.glance(choice.id, path, timeout_s=timeout_s)
    if seen is None:
        raise ProxyError(
            "model_not_loaded",
            f"Model {choice.id} is not loaded, and looking at it does not load it. Send it a request, or run "
            f"`paddock load {choice.id}`.",
        )
    if seen.status is None:
        raise ProxyError(
            "connect_timeout",
            f"The engine did not answer within {timeout_s:g} s. It says nothing while it reads a prompt.",
        )
    if seen.status != OK:
        raise engine_refusal(seen.status, orjson.dumps(seen.answer), model=seen.request)
    await exchange.answer.send_json(OK, orjson.dumps(_shown(seen.answer, choice.asked)))


def _shown(answer: Any, asked_model: str) -> Any:
    """The answer under the asked model name, with names of files where their paths stood."""
    if isinstance(answer, list):
        return [_shown(entry, asked_model) for entry in answer]
    if not isinstance(answer, dict):
        return answer
    names = {name: Path(answer[name]).name for name in PATHS_IN if isinstance(answer.get(name), str)}
    alias = {"model_alias": asked_model} if "model_alias" in answer else {}
    return {**answer, **names, **alias}
