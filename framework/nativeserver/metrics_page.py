"""GET /metrics: Prometheus' text form of what the engine counts (12 §18). Never wakes the engine."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import SLEEPING
from framework.nativeserver.core_speculation import Speculation
from framework.nativeserver.errors import ApiError
from framework.nativeserver.metric import Metric, Series, events, lines
from framework.nativeserver.services import services_of
from framework.nativeserver.speculation_metrics import METRICS as SPECULATION
from framework.nativeserver.speculation_metrics import fallback

CONTENT_TYPE = "text/plain; version=0.0.4"
US_PER_S = 1_000_000


def _total(name: str) -> Callable[[Any], float]:
    return attrgetter(f"totals.{name}")


def _seconds(name: str) -> Callable[[Any], float]:
    return lambda snapshot: getattr(snapshot.totals, name) / US_PER_S


def _busy_share(snapshot: Any) -> float:
    return float(snapshot.totals.busy_slots / max(1, snapshot.totals.n_decode))


def _failures(snapshot: Any) -> Series:
    return {(("code", str(code)),): n for code, n in sorted(snapshot.totals.decode_failures.items())}


def _checkpoints(snapshot: Any) -> Series:
    names = ("created", "restored", "evicted")
    return events("event", {name: getattr(snapshot.totals, f"checkpoints_{name}") for name in names})


def _sleeping(snapshot: Any) -> int:
    return int(snapshot.state == SLEEPING)


METRICS: tuple[Metric, ...] = (
    Metric("prompt_tokens_total", "counter", "Prompt tokens evaluated", _total("prompt_tokens")),
    Metric("prompt_tokens_cached_total", "counter", "Prompt tokens reused", _total("prompt_tokens_cached")),
    Metric("prompt_seconds_total", "counter", "Time spent on prompts", _seconds("prompt_us")),
    Metric("tokens_predicted_total", "counter", "Tokens generated", _total("predicted_tokens")),
    Metric("tokens_predicted_seconds_total", "counter", "Time spent generating", _seconds("predicted_us")),
    Metric("n_decode_total", "counter", "Decode calls that went well", _total("n_decode")),
    Metric("decode_failures_total", "counter", "Decode calls that failed, by code", _failures),
    # A gauge by nature; llama-server's type is kept for those who read both.
    Metric("n_tokens_max", "counter", "Longest token list of a slot", _total("n_tokens_max")),
    Metric("n_busy_slots_per_decode", "gauge", "Busy slots of a decode call, on average", _busy_share),
    Metric("prompt_tokens_seconds", "gauge", "Prompt tokens a second, last 60 s", _total("prompt_rate")),
    Metric("predicted_tokens_seconds", "gauge", "Tokens a second, last 60 s", _total("predicted_rate")),
    Metric("requests_processing", "gauge", "Busy slots", attrgetter("n_processing")),
    Metric("requests_deferred", "gauge", "Tasks that wait for a slot", attrgetter("n_deferred")),
    *SPECULATION,
    Metric(
        "prompt_cache_bytes", "gauge", "Bytes of prompts in host memory", attrgetter("prompt_cache_bytes")
    ),
    Metric("prompt_cache_entries", "gauge", "Prompts in host memory", attrgetter("prompt_cache_entries")),
    Metric("checkpoints_total", "counter", "State checkpoints, by event", _checkpoints),
    Metric("refills_total", "counter", "Prompts evaluated again after a failure", _total("refills")),
    Metric("engine_sleeping", "gauge", "1 while the model is out of memory", _sleeping),
)


async def endpoint(request: Request) -> Response:
    """Every metric; 501 without the switch."""
    services = services_of(request)
    if not services.options.metrics:
        raise ApiError("not_supported", "This server has no metrics. Start it with `--metrics`")
    text = page(services.bridge.snapshot(), services.bridge.speculation())
    headers = {"content-type": CONTENT_TYPE, "process-start-time-unix": str(services.started_at)}
    return Response(text, headers=headers)


def page(snapshot: Any, speculation: Speculation) -> str:
    """The text of a snapshot. Pure."""
    return "".join(line for metric in (*METRICS, fallback(speculation)) for line in lines(metric, snapshot))
