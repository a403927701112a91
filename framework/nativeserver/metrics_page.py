"""GET /metrics: Prometheus' text form of what the engine counts (12 §18). Never wakes the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import SLEEPING
from framework.nativeserver.errors import ApiError
from framework.nativeserver.services import services_of
from framework.nativeserver.speculation_off import NOT_BUILT

PREFIX = "llamacpp:"
CONTENT_TYPE = "text/plain; version=0.0.4"
US_PER_S = 1_000_000
Labels = tuple[tuple[str, str], ...]
Series = Mapping[Labels, float]


@dataclass(frozen=True)
class Metric:
    """One family: what it counts, and how its value is read from a snapshot."""

    name: str
    kind: str
    help: str
    read: Callable[[Any], float | Series]
    """A number, or numbers by label; labelled series appear with their first event."""


def _total(name: str) -> Callable[[Any], float]:
    return attrgetter(f"totals.{name}")


def _seconds(name: str) -> Callable[[Any], float]:
    return lambda snapshot: getattr(snapshot.totals, name) / US_PER_S


def _busy_share(snapshot: Any) -> float:
    return float(snapshot.totals.busy_slots / max(1, snapshot.totals.n_decode))


def _failures(snapshot: Any) -> Series:
    return {(("code", str(code)),): n for code, n in sorted(snapshot.totals.decode_failures.items())}


def _checkpoints(snapshot: Any) -> Series:
    events = ("created", "restored", "evicted")
    counts = {event: getattr(snapshot.totals, f"checkpoints_{event}") for event in events}
    return {(("event", event),): n for event, n in counts.items() if n}


def _sleeping(snapshot: Any) -> int:
    return int(snapshot.state == SLEEPING)


def _none(_snapshot: Any) -> int:
    """Of what this build does not do."""
    return 0


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
    Metric("spec_decode_num_draft_tokens_total", "counter", "Tokens drafted", _none),
    Metric("spec_decode_num_accepted_tokens_total", "counter", "Drafted tokens accepted", _none),
    Metric("spec_decode_num_drafts_total", "counter", "Drafts verified", _none),
    Metric("spec_tree_drafts_total", "counter", "Drafts with branches", _none),
    Metric("spec_baseline_probes_total", "counter", "Cycles without drafts, for comparison", _none),
    Metric("spec_suppressions_total", "counter", "Times a tool marker paused drafting", _none),
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
    text = page(services.bridge.snapshot(), services.options.speculation_types)
    headers = {"content-type": CONTENT_TYPE, "process-start-time-unix": str(services.started_at)}
    return Response(text, headers=headers)


def page(snapshot: Any, asked_speculation: Iterable[str] = ()) -> str:
    """The text of a snapshot. Pure."""
    dropped: Series = {(("type", name), ("reason", NOT_BUILT)): 1 for name in asked_speculation}
    fallback = Metric("spec_fallback", "gauge", "Types of drafting that were dropped", lambda _: dropped)
    return "".join(line for metric in (*METRICS, fallback) for line in _lines(metric, snapshot))


def _lines(metric: Metric, snapshot: Any) -> Iterable[str]:
    name, value = PREFIX + metric.name, metric.read(snapshot)
    yield f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    series: Series = value if isinstance(value, Mapping) else {(): value}
    for labels, number in series.items():
        yield f"{name}{_shown_labels(labels)} {shown_number(number)}\n"


def _shown_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def shown_number(number: float) -> str:
    """Integers exactly, others with up to nine digits; what is no number is 0."""
    if isinstance(number, int):
        return str(number)
    return f"{number:.9g}" if math.isfinite(number) else "0"
