"""First-token and stall clock, with times as numbers (08 §3.5-3.7)."""

from __future__ import annotations

import pytest

from framework.proxy.clocks import SHORTEST_WAIT_S, GenerationClock


@pytest.fixture
def clock() -> GenerationClock:
    return GenerationClock(100.0, first_token_s=1200.0, stall_s=120.0)


def test_the_first_token_may_take_its_whole_time(clock: GenerationClock) -> None:
    assert clock.begin_wait(100.0) == 1200.0


def test_comments_do_not_stop_the_first_token_clock(clock: GenerationClock) -> None:
    for second in range(101, 600):
        clock.begin_wait(second)
        clock.end_wait(second + 1)
    assert clock.begin_wait(600.0) == 700.0


def test_progress_does_not_stop_the_first_token_clock(clock: GenerationClock) -> None:
    clock.saw_event(progress=True)
    assert clock.begin_wait(600.0) == 700.0
    assert clock.code == "first_token_timeout"


def test_a_wait_that_begins_late_still_looks_at_what_is_there(clock: GenerationClock) -> None:
    assert clock.begin_wait(5000.0) == pytest.approx(SHORTEST_WAIT_S)


def test_comments_do_not_renew_the_last_look(clock: GenerationClock) -> None:
    clock.begin_wait(5000.0)
    clock.end_wait(5000.06)
    assert clock.begin_wait(5000.06) == pytest.approx(0.04)
    clock.end_wait(5000.1)
    assert clock.begin_wait(5000.2) == 0.0


def test_the_first_model_event_starts_the_stall_clock(clock: GenerationClock) -> None:
    clock.saw_event(progress=False)
    assert clock.begin_wait(5000.0) == 120.0
    assert clock.code == "stream_stalled"


def test_comments_use_up_the_stall_clock(clock: GenerationClock) -> None:
    clock.saw_event(progress=False)
    for second in range(1000, 1119):
        clock.begin_wait(second)
        clock.end_wait(second + 1)
    assert clock.begin_wait(1119.0) == pytest.approx(1.0)


def test_progress_restarts_the_stall_clock_of_an_opened_stream(clock: GenerationClock) -> None:
    clock.saw_event(progress=False)
    clock.begin_wait(1000.0)
    clock.end_wait(1100.0)
    clock.saw_event(progress=True)
    assert clock.begin_wait(1100.0) == 120.0


def test_a_stream_just_faster_than_the_limit_lives(clock: GenerationClock) -> None:
    now = 100.0
    for _ in range(50):
        clock.saw_event(progress=False)
        assert clock.begin_wait(now) > 119.9
        now += 119.9
        clock.end_wait(now)


def test_time_spent_on_a_slow_client_does_not_count(clock: GenerationClock) -> None:
    clock.saw_event(progress=False)
    clock.begin_wait(1000.0)
    clock.end_wait(1010.0)
    assert clock.begin_wait(9000.0) == 110.0
