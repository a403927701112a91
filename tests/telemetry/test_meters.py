"""What is counted of requests and events, and that no client makes series without end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from framework.telemetry.exposition import render
from framework.telemetry.meter import MOST_HISTOGRAMS, MOST_SERIES, OTHER, Counter, Histogram
from framework.telemetry.meters import Meters
from framework.values.event import Event
from framework.values.reason import Reason
from framework.values.request_record import RequestRecord
from tests.telemetry.test_exposition import parsed

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
CHAT = "/v1/chat/completions"
RECORD = RequestRecord(
    "req-1", NOON, CHAT, "chat", 0, "laptop", 200, 0.02, 0.3, 2.0, 100, 60, 50, None, None, "stop", None
)


def counted(*records: RequestRecord) -> dict[str, list[tuple[dict[str, str], float]]]:
    meters = Meters([CHAT])
    for record in records:
        meters.request_ended(record)
    return parsed(render(meters.families()))


def test_a_request_counts_with_its_tokens() -> None:
    found = counted(RECORD, RECORD)
    who = {"model": "chat", "key": "laptop"}
    assert found["paddock_requests_total"] == [({**who, "route": CHAT, "status": "200"}, 2.0)]
    assert found["paddock_prompt_tokens_total"] == [(who, 200.0)]
    assert found["paddock_cached_tokens_total"] == [(who, 120.0)]
    assert found["paddock_generated_tokens_total"] == [(who, 100.0)]


def test_times_are_histograms_that_end_in_all() -> None:
    found = counted(RECORD, replace(RECORD, first_token_s=9999.0))
    buckets = {labels["le"]: value for labels, value in found["paddock_first_token_seconds_bucket"]}
    assert (buckets["0.25"], buckets["0.5"], buckets["1200"], buckets["+Inf"]) == (0, 1, 1, 2)
    assert found["paddock_first_token_seconds_count"] == [({"model": "chat"}, 2.0)]
    assert found["paddock_first_token_seconds_sum"] == [({"model": "chat"}, 9999.3)]


def test_a_value_at_the_border_of_a_bucket_is_inside() -> None:
    histogram = Histogram("h", "H.", "model", (1, 2))
    histogram.observe("m", 1.0)
    assert parsed(render([histogram.family()]))["h_bucket"][0] == ({"model": "m", "le": "1"}, 1.0)


def test_limits_are_told_by_key_and_errors_by_code() -> None:
    found = counted(replace(RECORD, model=None, status=429, error="tokens_limited"))
    assert found["paddock_limited_total"] == [({"key": "laptop", "reason": "tokens_limited"}, 1.0)]
    labels = {"model": "", "key": "laptop", "code": "tokens_limited"}
    assert found["paddock_request_errors_total"] == [(labels, 1.0)]
    assert "paddock_request_seconds_count" not in found


def test_a_path_of_a_client_is_no_label() -> None:
    found = counted(*(replace(RECORD, route=f"/v1/guess/{n}", model=None, status=404) for n in range(50)))
    assert [labels["route"] for labels, _ in found["paddock_requests_total"]] == [OTHER]


def test_series_are_bounded_and_nothing_is_lost() -> None:
    counter = Counter("c_total", "C.", "model")
    for number in range(MOST_SERIES + 500):
        counter.add(f"m{number}")
    samples = counter.family().samples
    assert len(samples) == MOST_SERIES + 1
    assert sum(sample.value for sample in samples) == MOST_SERIES + 500
    histogram = Histogram("h", "H.", "model", (1,))
    for number in range(MOST_HISTOGRAMS + 5):
        histogram.observe(f"m{number}", 0.5)
    counts = [s for s in histogram.family().samples if s.suffix == "_count"]
    assert len(counts) == MOST_HISTOGRAMS + 1
    assert sum(sample.value for sample in counts) == MOST_HISTOGRAMS + 5


@pytest.mark.parametrize(
    ("kind", "outcome"), [("ready", "ready"), ("start_failed", "failed"), ("refused", "refused")]
)
def test_loads_are_counted_by_outcome(kind: str, outcome: str) -> None:
    meters = Meters()
    meters.event_told(Event(1, NOON, kind, "said", "chat", 0, None, {"seconds": 3.0}))
    found = parsed(render(meters.families()))
    assert found["paddock_loads_total"] == [({"model": "chat", "outcome": outcome}, 1.0)]
    assert ("paddock_load_seconds_sum" in found) is (kind == "ready")


def test_fallbacks_are_counted_by_reason() -> None:
    meters = Meters()
    for kind in ("degraded", "demoted", "planned"):
        meters.event_told(Event(1, NOON, kind, "said", "chat", 0, Reason("no_draft", "No."), {}))
    found = parsed(render(meters.families()))
    assert found["paddock_fallbacks_total"] == [({"model": "chat", "reason": "no_draft"}, 2.0)]
