"""The last hour: counted as it goes, bounded, and never asked of an engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from framework.telemetry.events import utc_now
from framework.telemetry.history import MOST_DEVICES, MOST_MODELS, History
from framework.telemetry.history_watch import recall
from framework.telemetry.request_log import RequestLog
from framework.telemetry.step import MOST_KEPT, quantile
from framework.values.history import STEP_S, STEPS
from framework.values.instance import ModelView, QueueView, State
from tests.dashboard import pool_samples, samples
from tests.telemetry.samples import life, record

START = datetime(2026, 3, 4, 3, 12, 30, tzinfo=UTC)


class Clock:
    """Time that goes by when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.jumped_s = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.now_s - 1000.0 + self.jumped_s)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def history_of(clock: Clock) -> History:
    return History(clock=lambda: clock.now_s, now=clock.now)


def drafting(name: str = "chat") -> ModelView:
    slots = (
        samples.busy_slot(0, draft={"depth": 3}),
        samples.busy_slot(1, draft={"depth": 6}),
        samples.slot(2),
    )
    asked = samples.request(name)
    return samples.model(
        name,
        asked=asked,
        instances=(samples.instance(asked, slots=slots),),
        queue=QueueView(2, 16, 1.0, None),
    )


def test_requests_are_counted_by_how_they_ended(clock: Clock) -> None:
    history = history_of(clock)
    for status in (200, 200, 499, 409, 429, 404, 502):
        history.request_ended(record(1, status=status))
    (step,) = history.model_now("chat").steps
    assert (step.answered, step.left, step.refused, step.failed, step.requests) == (2, 2, 2, 1, 7)


def test_times_and_speeds_are_those_of_the_answers(clock: Clock) -> None:
    history = history_of(clock)
    for number in range(1, 21):
        speed = None if number == 20 else float(number)
        history.request_ended(record(1, first_token_s=number / 10, generation_tokens_per_s=speed, drafted=10))
    (step,) = history.model_now("chat").steps
    assert (step.first_token_p50_s, step.first_token_p95_s) == (1.0, 1.9)
    assert (step.generation_tokens_per_s, step.generated_tokens) == (10.0, 80)
    assert (step.drafted, step.accepted, step.acceptance) == (200, 0, 0.0)


def test_steps_begin_with_the_minutes_and_old_ones_go(clock: Clock) -> None:
    history = history_of(clock)
    history.request_ended(record(1))
    clock.now_s += 30.0
    history.request_ended(record(2))
    steps = history.model_now("chat").steps
    assert [step.at.strftime("%H:%M:%S") for step in steps] == ["03:12:00", "03:13:00"]
    clock.now_s += STEP_S * STEPS
    history.looked((), ())
    steps = history.model_now("chat").steps
    assert (len(steps), sum(step.requests for step in steps)) == (STEPS, 0)


def test_a_wall_clock_that_jumps_moves_no_count(clock: Clock) -> None:
    history = history_of(clock)
    history.request_ended(record(1))
    clock.jumped_s = -86_400.0
    clock.now_s += STEP_S
    history.request_ended(record(2))
    assert [step.requests for step in history.model_now("chat").steps] == [1, 1]


def test_a_look_sees_slots_queue_and_depth(clock: Clock) -> None:
    history = history_of(clock)
    history.looked((drafting(),), ())
    (step,) = history.model("chat").steps
    assert (step.busy_slots, step.slots, step.waiting, step.depth) == (2, 3, 2, 4.5)
    assert history.model("nobody").steps[0].busy_slots is None


def test_devices_keep_the_most_of_each_minute(clock: Clock) -> None:
    history = history_of(clock)
    full, empty = (pool_samples.use("CUDA0", free_bytes=free) for free in (1, 9))
    for use in (empty, full, empty):
        history.looked((), (pool_samples.pool(devices=(use,)),))
    (device,) = history.devices()
    assert (device.device, device.steps[-1].used_bytes) == ("CUDA0", full.total_bytes - 1)


def test_readers_get_the_same_value_until_the_next_look(clock: Clock) -> None:
    history = history_of(clock)
    before = history.model("chat")
    history.request_ended(record(1))
    assert history.model("chat") is before
    assert history.looked((), ())
    assert history.model("chat") != before
    assert not history.looked((), ())
    clock.now_s += STEP_S
    assert history.looked((), ())


def test_a_system_at_rest_is_not_told_again(clock: Clock) -> None:
    history = history_of(clock)
    idle = samples.model(instances=(samples.instance(samples.request(), slots=(samples.slot(),)),))
    stopped = samples.model("off", State.STOPPED)
    history.looked((idle, stopped), (pool_samples.pool(),))
    assert not history.looked((idle, stopped), (pool_samples.pool(),))


def test_what_is_kept_is_bounded(clock: Clock) -> None:
    history = history_of(clock)
    for number in range(MOST_MODELS + 10):
        history.request_ended(record(1, model=f"m{number}"))
    for number in range(10 * MOST_KEPT):
        history.request_ended(record(1, model="m0", first_token_s=float(number)))
    pool = pool_samples.pool(devices=tuple(pool_samples.use(f"d{n}") for n in range(MOST_DEVICES + 10)))
    history.looked((), (pool,))
    (last,) = history.model_now(f"m{MOST_MODELS}").steps
    assert last.requests == 0
    assert len(history.devices()) == MOST_DEVICES
    (step,) = history.model_now("m0").steps
    assert step.requests == 10 * MOST_KEPT + 1
    assert step.first_token_p50_s is not None
    assert 100 < step.first_token_p50_s < 540


def test_a_request_of_no_model_is_nobodys(clock: Clock) -> None:
    history = history_of(clock)
    history.request_ended(record(1, model=None, status=404))
    assert not history.looked((), ()) or history.model_now("").steps[0].requests == 0


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.0), (0.95, 4.0), (1.0, 4.0)])
def test_a_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == expected
    assert quantile([], share) is None


async def test_the_hour_before_a_restart_comes_from_the_request_log(tmp_path: Path) -> None:
    now = utc_now()
    with life(tmp_path) as one:
        log = RequestLog(one.store)
        log.adopt("metadata")
        for number, minutes in ((1, 200), (2, 50), (3, 50), (4, 1)):
            log.keep(record(number, at=now - timedelta(minutes=minutes), total_s=1.0))
        one.until(lambda: len(one.store.find_requests(limit=9)) == 4, "the requests")
    with life(tmp_path) as later:
        history = History()
        await recall(history, RequestLog(later.store))
    steps = history.model_now("chat").steps
    assert sum(step.requests for step in steps) == 3
    assert 50 <= len(steps) <= 52
    # Where a minute has just begun, the oldest request is at the edge of its step.
    assert 2 in (steps[0].requests, steps[1].requests)


async def test_without_a_log_nothing_is_known_of_before() -> None:
    history = History()
    await recall(history, RequestLog())
    assert len(history.model_now("chat").steps) == 1
    assert replace(history.model_now("chat").steps[0]).requests == 0
