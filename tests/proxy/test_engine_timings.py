"""Speeds are what the engine counted over its own clock; what it cannot mean is not told (MD-03)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from framework.proxy.engine_timings import NOT_TOLD, engine_times
from framework.proxy.records import ActiveRequest
from framework.proxy.stream_events import read_event

GOOD = {"prompt_n": 200, "prompt_ms": 1000.0, "predicted_n": 50, "predicted_ms": 1000.0}


def test_speeds_are_the_engines_own_whatever_the_client_waited() -> None:
    request = ActiveRequest("r", datetime.now(UTC), "/v1/chat/completions", began_at_s=100.0)
    request.queue_s = 8.0
    for payload in (
        b'{"choices": [{"index": 0, "delta": {"content": "a"}}]}',
        b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "timings": {"prompt_n": 200,'
        b' "prompt_ms": 1000, "predicted_n": 50, "predicted_ms": 1000}}',
    ):
        event = read_event(payload)
        assert event is not None
        request.state.observe(event)
    record = request.record(200, 110.0)
    assert (record.prompt_tokens_per_s, record.generation_tokens_per_s) == (200.0, 50.0)
    assert (record.queue_s, record.total_s, record.prompt_s, record.generation_s) == (8.0, 10.0, 1.0, 1.0)


def test_an_engine_that_tells_nothing_has_no_speed() -> None:
    record = ActiveRequest("r", datetime.now(UTC), "/v1/embeddings", began_at_s=0.0).record(200, 10.0)
    assert (record.prompt_tokens_per_s, record.generation_tokens_per_s) == (None, None)


def test_numbers_before_the_first_token_are_of_another_request() -> None:
    request = ActiveRequest("r", datetime.now(UTC), "/v1/chat/completions", began_at_s=0.0)
    event = read_event(b'{"prompt_progress": {}, "timings": {"predicted_n": 50, "predicted_ms": 1000}}')
    assert event is not None
    request.state.observe(event)
    assert request.record(499, 1.0).generation_tokens_per_s is None


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"predicted_n": 1}, None, id="one-token-took-no-time"),
        pytest.param({"predicted_n": 0}, None, id="no-token"),
        pytest.param({"predicted_n": -5}, None, id="fewer-than-none"),
        pytest.param({"predicted_n": "50"}, None, id="a-text"),
        pytest.param({"predicted_n": True}, None, id="a-switch"),
        pytest.param({"predicted_n": 2}, 2.0, id="two"),
        pytest.param({"predicted_ms": 0}, None, id="no-time"),
        pytest.param({"predicted_ms": math.nan}, None, id="nan"),
        pytest.param({"predicted_ms": math.inf}, None, id="for-ever"),
        pytest.param({"predicted_ms": 1e-9}, None, id="faster-than-anything"),
        pytest.param({"predicted_ms": None}, None, id="null"),
        pytest.param({}, 50.0, id="as-it-is"),
    ],
)
def test_what_cannot_be_is_not_told(changed: dict[str, Any], expected: float | None) -> None:
    assert engine_times({**GOOD, **changed}).generation_tokens_per_s == expected


def test_one_of_several_choices_says_nothing_of_the_answer() -> None:
    assert engine_times(GOOD, choices=2) == NOT_TOLD
    assert engine_times(None) == NOT_TOLD
