"""What the manager counts over its life, for `/metrics`: requests, tokens, loads, events (13 §9).

Fed with every finished request and every event, on the event loop; read by the API. Labels are names of
models and keys of the manifest, routes and codes of ours: never text of a client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from framework.telemetry.exposition import Family
from framework.telemetry.meter import OTHER, Counter, Histogram
from framework.values.event import Event
from framework.values.request_record import RequestRecord

# From a cached prompt of a small model to a long document on host memory.
FIRST_TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1200)
TOTAL_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
# A request waits for nothing, for a slot's turn, for a load, or for another model to leave.
QUEUE_S = (0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
LOAD_S = (0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)

LIMITS = frozenset({"rate_limited", "concurrency_limited", "tokens_limited"})
LOADS: Mapping[str, str] = {"ready": "ready", "start_failed": "failed", "refused": "refused"}
"""Kind of an event to the outcome of a load."""
FALLBACKS = frozenset({"degraded", "demoted"})


class Meters:
    """All counts of one manager. `routes` are the values that the label `route` may have."""

    def __init__(self, routes: Collection[str] = ()) -> None:
        self._routes = frozenset(routes)
        who = ("model", "key")
        self._requests = Counter("paddock_requests_total", "Requests that ended.", *who, "route", "status")
        self._errors = Counter(
            "paddock_request_errors_total", "Requests that ended with an error.", *who, "code"
        )
        self._limited = Counter(
            "paddock_limited_total", "Requests over a limit of their key.", "key", "reason"
        )
        self._retries = Counter(
            "paddock_retries_total", "Requests that were sent to an engine twice.", "model"
        )
        self._prompt = Counter(
            "paddock_prompt_tokens_total", "Tokens of prompts, those from the cache included.", *who
        )
        self._cached = Counter("paddock_cached_tokens_total", "Tokens of prompts that the cache had.", *who)
        self._generated = Counter("paddock_generated_tokens_total", "Generated tokens.", *who)
        self._queue = Histogram("paddock_queue_seconds", "Wait for an instance.", "model", QUEUE_S)
        self._first = Histogram(
            "paddock_first_token_seconds", "Arrival of a request to its first token.", "model", FIRST_TOKEN_S
        )
        self._total = Histogram(
            "paddock_request_seconds", "Arrival of a request to its end.", "model", TOTAL_S
        )
        self._events = Counter("paddock_events_total", "Events by kind.", "model", "kind")
        self._loads = Counter("paddock_loads_total", "Starts of instances by outcome.", "model", "outcome")
        self._load_s = Histogram("paddock_load_seconds", "Start of a process to ready.", "model", LOAD_S)
        self._fallbacks = Counter(
            "paddock_fallbacks_total",
            "Times that an instance went without what was asked.",
            "model",
            "reason",
        )
        self._exits = Counter(
            "paddock_exits_total",
            "Engines that ended by themselves while they served; `hard` is 1 where the process broke.",
            "model",
            "reason",
            "hard",
        )
        self._all = (
            *(self._requests, self._errors, self._limited, self._retries),
            *(self._prompt, self._cached, self._generated),
            *(self._queue, self._first, self._total),
            *(self._loads, self._load_s, self._fallbacks, self._exits, self._events),
        )

    def request_ended(self, record: RequestRecord) -> None:
        """Count a request in."""
        model, key = record.model or "", record.key or ""
        route = record.route if record.route in self._routes else OTHER
        self._requests.add(model, key, route, str(record.status))
        if record.error is not None:
            self._errors.add(model, key, record.error)
            if record.error in LIMITS:
                self._limited.add(key, record.error)
        if not model:
            return
        if record.retried:
            self._retries.add(model)
        for counter, tokens in (
            (self._prompt, record.prompt_tokens),
            (self._cached, record.cached_tokens),
            (self._generated, record.generated_tokens),
        ):
            if tokens:
                counter.add(model, key, amount=tokens)
        self._queue.observe(model, record.queue_s)
        self._total.observe(model, record.total_s)
        if record.first_token_s is not None:
            self._first.observe(model, record.first_token_s)

    def event_told(self, event: Event) -> None:
        """Count an event in."""
        model = event.model or ""
        self._events.add(model, event.kind)
        if event.kind in LOADS:
            self._loads.add(model, LOADS[event.kind])
        if event.kind in FALLBACKS and event.reason is not None:
            self._fallbacks.add(model, event.reason.code)
        if event.kind == "exited" and event.reason is not None:
            self._exits.add(model, event.reason.code, str(int(event.data.get("hard") is True)))
        seconds = event.data.get("seconds")
        if event.kind == "ready" and isinstance(seconds, int | float):
            self._load_s.observe(model, float(seconds))

    def families(self) -> Iterable[Family]:
        """Everything as it is now."""
        return tuple(one.family() for one in self._all)
