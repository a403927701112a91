"""What a trial says of its answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from framework.proxy.records import ActiveRequest
from framework.trial import NothingTimed, timing_of


def answered(first_token_s: float | None) -> ActiveRequest:
    """An answer of 100 tokens in a second."""
    request = ActiveRequest("r", datetime(2026, 1, 1, tzinfo=UTC), "bench", 0.0)
    request.state.timings = {"predicted_n": 100, "predicted_ms": 1000.0}
    request.first_token_s = first_token_s
    return request


@pytest.mark.parametrize(
    ("waits_s", "median_s"),
    [
        pytest.param((0.2, 0.4, 0.6), 0.4, id="all"),
        pytest.param((None, None, 0.4), 0.4, id="some answers without a first token"),
        pytest.param((None, None), None, id="none"),
    ],
)
def test_an_answer_without_a_first_token_does_not_count_as_one_at_once(
    waits_s: tuple[float | None, ...], median_s: float | None
) -> None:
    assert timing_of([answered(wait_s) for wait_s in waits_s]).first_token_s == median_s


@pytest.mark.parametrize("milliseconds", [5e-324, 0.0, -1.0, 1e308, float("nan"), float("inf"), True, "5"])
def test_times_that_no_engine_takes_are_not_counted(milliseconds: object) -> None:
    odd = answered(0.1)
    odd.state.timings = {"predicted_n": 100, "predicted_ms": milliseconds}
    with pytest.raises(NothingTimed):
        timing_of([odd])
    assert timing_of([odd, answered(0.1)]).tokens_per_s == 100.0
