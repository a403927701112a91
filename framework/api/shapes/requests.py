"""Requests as JSON: those that ended, and those that are served now (13 §9)."""

from __future__ import annotations

from typing import Any

from framework.api.shapes.basic import at, plain
from framework.proxy.records import RequestView
from framework.telemetry.tables import KeptRequest

TIMES = ("queue_s", "first_token_s", "total_s", "prompt_s", "generation_s")
SPEEDS = ("prompt_tokens_per_s", "generation_tokens_per_s")


def kept_request_json(kept: KeptRequest) -> dict[str, Any]:
    """One that ended. `texts` is null where none were kept, and in lists."""
    record = kept.record
    document: dict[str, Any] = plain(record)
    for names, digits in ((TIMES, 3), (SPEEDS, 2)):
        for name in names:
            value = document[name]
            document[name] = round(value, digits) if isinstance(value, float) else value
    return {"seq": kept.seq, **document}


def running_request_json(view: RequestView) -> dict[str, Any]:
    """One that is served; `generated_tokens` is an estimate."""
    return {
        "id": view.id,
        "at": at(view.at),
        "route": view.route,
        "model": view.model or None,
        "replica": view.replica,
        "key": view.key,
        "phase": view.phase,
        "generated_tokens": view.tokens,
    }
