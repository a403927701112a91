"""What a process drafts and how fast it answers, from leases and the engine's timings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from framework.runtime.lease import Lease
from framework.runtime.logs import LogBuffer
from framework.runtime.speed_meter import SpeedMeter, answer_speed
from framework.values.request import ModelRequest, ModelSource
from framework.values.spec_yield import NO_TOTALS, AnswerSpeed, SpecTotals
from tests.engines.test_draft_log import LINE
from tests.support.answers import HEAD, NGRAM, PLAIN

# As /v1/chat/completions of b10068 gives them (15 §6).
TIMINGS = {
    "cache_n": 0,
    "prompt_n": 47,
    "prompt_ms": 477.329,
    "predicted_n": 200,
    "predicted_ms": 4000.0,
    "predicted_per_second": 50.0,
    "draft_n": 194,
    "draft_n_accepted": 176,
}


async def a_lease(timings: Mapping[str, Any] | None = TIMINGS) -> Lease:
    lease = Lease(
        instance="chat.0@1",
        model="chat",
        replica=0,
        generation=1,
        base_url="http://127.0.0.1:1",
        headers={},
        request=ModelRequest("chat", ModelSource()),
        slot_context=4096,
        vision=False,
        revoked=asyncio.get_running_loop().create_future(),
        on_release=lambda _: None,
    )
    lease.timings = timings
    return lease


@pytest.fixture
def meter() -> SpeedMeter:
    """Of a process with four slots that drafts by n-grams."""
    made = SpeedMeter()
    made.drafting, made.slots = NGRAM, 4
    return made


async def test_an_answer_is_measured_by_the_clock_of_the_engine(meter: SpeedMeter) -> None:
    lease = await a_lease()
    meter.opened(lease, 1.0)
    assert meter.closed(lease, 9.0) == AnswerSpeed(NGRAM, 1, 200, 4.0, 194, 176, 9.0)


async def test_all_answers_of_the_process_are_summed(meter: SpeedMeter) -> None:
    for _ in range(3):
        lease = await a_lease()
        meter.opened(lease, 1.0)
        meter.closed(lease, 2.0)
    assert meter.totals == SpecTotals(3, 600, 582, 528)


async def test_busy_slots_are_a_mean_over_the_request(meter: SpeedMeter) -> None:
    leases = [await a_lease() for _ in range(3)]
    for lease in leases:
        meter.opened(lease, 0.0)
    speeds = [meter.closed(lease, at_s) for lease, at_s in zip(leases, (1.0, 2.0, 10.0), strict=True)]
    assert [speed.busy_slots for speed in speeds if speed] == [3, 2, 1]


async def test_what_waits_inside_the_engine_keeps_no_slot_busy(meter: SpeedMeter) -> None:
    leases = [await a_lease() for _ in range(9)]
    for lease in leases:
        meter.opened(lease, 0.0)
    speed = meter.closed(leases[0], 1.0)
    assert speed is not None
    assert speed.busy_slots == 4


async def test_an_answer_that_did_not_end_is_not_measured(meter: SpeedMeter) -> None:
    lease = await a_lease(None)
    meter.opened(lease, 1.0)
    assert meter.closed(lease, 2.0) is None
    assert meter.totals == NO_TOTALS


async def test_before_the_process_is_ready_nothing_is_measured() -> None:
    meter, lease = SpeedMeter(), await a_lease()
    meter.opened(lease, 1.0)
    assert meter.closed(lease, 2.0) is None


async def test_a_lease_that_was_never_opened_is_no_request_here(meter: SpeedMeter) -> None:
    assert meter.closed(await a_lease(), 2.0) is None


@pytest.mark.parametrize(
    "timings",
    [
        pytest.param({}, id="none"),
        pytest.param({**TIMINGS, "predicted_n": 0}, id="nothing generated"),
        pytest.param({**TIMINGS, "predicted_n": True}, id="no number of tokens"),
        pytest.param({**TIMINGS, "predicted_n": 10**30}, id="more tokens than there can be"),
        pytest.param({**TIMINGS, "predicted_ms": 0}, id="no time"),
        pytest.param({**TIMINGS, "predicted_ms": None}, id="unknown time"),
        pytest.param({**TIMINGS, "predicted_ms": float("nan")}, id="a time that is no number"),
        pytest.param({**TIMINGS, "predicted_ms": "1"}, id="a text"),
    ],
)
def test_timings_that_tell_no_speed_are_none(timings: Mapping[str, Any]) -> None:
    assert answer_speed(timings, PLAIN, 1, 0.0) is None


def test_more_accepted_than_drafted_counts_as_all_of_them() -> None:
    speed = answer_speed({**TIMINGS, "draft_n_accepted": 9999}, NGRAM, 1, 0.0)
    assert speed is not None
    assert speed.accepted == speed.drafted == 194


async def answered(meter: SpeedMeter) -> None:
    """One answer with drafts, so that statistics of drafts can be true."""
    lease = await a_lease()
    meter.opened(lease, 1.0)
    meter.closed(lease, 6.0)


async def test_positions_come_from_the_log_and_the_newest_line_counts(meter: SpeedMeter) -> None:
    await answered(meter)
    meter.saw_lines([LINE.replace("(0.500, 0.288, 0.019)", "(0.250)"), "another line", LINE])
    assert meter.totals.accepted_by_position == (26, 15, 1)
    assert meter.totals.drafted_by_position == (52, 52, 52)


async def test_lines_reach_it_through_the_log_of_its_replica(meter: SpeedMeter) -> None:
    await answered(meter)
    log = LogBuffer()
    log.append(LINE)
    log.on_lines = meter.saw_lines
    assert meter.totals.drafted_by_position == ()
    log.append(LINE)
    assert meter.totals.drafted_by_position == (52, 52, 52)


async def test_types_of_a_chain_are_summed(meter: SpeedMeter) -> None:
    meter.drafting = HEAD
    await answered(meter)
    meter.saw_lines([LINE, LINE.replace("ngram-mod", "draft-mtp").replace("0.288, 0.019", "0.500")])
    assert meter.totals.accepted_by_position == (52, 41, 1)


def test_lines_of_a_process_that_drafts_nothing_are_not_looked_at() -> None:
    meter = SpeedMeter()
    meter.drafting = PLAIN
    meter.saw_lines([LINE])
    assert meter.totals == NO_TOTALS


async def test_types_that_do_not_run_are_nobodys_statistics(meter: SpeedMeter) -> None:
    await answered(meter)
    meter.saw_lines([LINE.replace("ngram-mod", f"kind-{number}") for number in range(1000)])
    assert meter.totals.drafted_by_position == ()


def test_statistics_beyond_what_the_answers_said_are_not_believed(meter: SpeedMeter) -> None:
    meter.saw_lines([LINE])
    assert meter.totals == NO_TOTALS


@pytest.mark.parametrize("milliseconds", [True, 1e308, 5e-324, -1.0, float("nan"), "4000", None])
def test_times_that_no_engine_takes_are_no_speed(milliseconds: object) -> None:
    assert answer_speed({**TIMINGS, "predicted_ms": milliseconds}, NGRAM, 1, 0.0) is None
