"""What is known of a request: now, at its end, and in the log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest, log_record

AT = datetime(2026, 1, 2, tzinfo=UTC)


def request(**fields: object) -> ActiveRequest:
    found = ActiveRequest("req-1", AT, "/v1/chat/completions", 10.0)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def test_a_record_takes_counts_from_usage_and_timings() -> None:
    active = request(model="smol", key="laptop", queue_s=0.5, first_token_s=1.5)
    active.state.usages.append(
        {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}
    )
    active.state.timings = {"draft_n": 6, "draft_n_accepted": 3}
    active.state.finish[0] = "length"
    record = active.record(200, 13.0)
    assert (record.prompt_tokens, record.cached_tokens, record.generated_tokens) == (9, 8, 4)
    assert (record.drafted, record.accepted) == (6, 3)
    assert (record.status, record.total_s, record.stop_reason) == (200, 3.0, "length")


def test_a_record_of_an_answer_that_broke_off_counts_its_pieces() -> None:
    active = request()
    active.state.pieces = 7
    assert active.record(499, 11.0).generated_tokens == 7


def test_one_line_is_logged_for_one_request(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "framework.proxy"):
        log_record(request(model="smol", key="laptop").record(200, 12.0))
    (line,) = caplog.messages
    assert line.startswith('req-1 "/v1/chat/completions" model="smol" key="laptop" status=200 queue=0.000s')


def test_text_of_others_cannot_forge_lines(caplog: pytest.LogCaptureFixture) -> None:
    active = request(route="/m/\x1b[31m\nfake line/v1/completions")
    active.state.finish[0] = "st\nop\u2028"
    with caplog.at_level(logging.INFO, "framework.proxy"):
        log_record(active.record(200, 12.0))
    (line,) = caplog.messages
    assert line.isprintable()
    assert line.isascii()


def test_active_requests_are_seen_oldest_first() -> None:
    requests = InFlight()
    first, second = request(), request(id="req-2")
    requests.add(first)
    requests.add(second)
    requests.remove(first)
    requests.add(first)
    assert [view.id for view in requests.views()] == ["req-2", "req-1"]


def test_a_cancel_marks_the_request() -> None:
    requests = InFlight()
    active = request()
    requests.add(active)
    assert requests.cancel("req-1")
    assert active.scope.cause == "cancelled"


def test_an_unknown_request_cannot_be_cancelled() -> None:
    assert not InFlight().cancel("req-1")
    assert InFlight().find("req-1") is None
