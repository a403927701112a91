"""The yield watch of one model: what it compares, when it judges, and what it keeps (05 §11.7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.planning.speculation.profit import WatchLimits
from framework.runtime.speculation_watch import MOST_LAUNCHES, MOST_PLACES, SpeculationWatch
from framework.runtime.speed_store import SpeedStore
from framework.values.spec_yield import Drafting
from tests.support.answers import HEAD, NGRAM, PLAIN, an_answer

LIMITS = WatchLimits(min_requests=3, loses_for_s=600.0)
MINUTE_S = 60.0


@pytest.fixture
def watch() -> SpeculationWatch:
    return SpeculationWatch(SpeedStore(), LIMITS)


def feed(
    watch: SpeculationWatch,
    by: Drafting,
    tokens_per_s: float,
    *,
    minutes: int = 3,
    busy_slots: int = 1,
    begin_s: float = 0.0,
) -> float:
    """One answer a minute; the time of the last one."""
    at_s = begin_s
    for minute in range(minutes):
        at_s = begin_s + minute * MINUTE_S
        watch.note(an_answer(by, tokens_per_s, busy_slots=busy_slots, at_s=at_s))
    return at_s


def test_a_gain_is_shown_and_nothing_is_judged(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 25, minutes=30)
    (speed,) = watch.speeds()
    assert speed.speedup == pytest.approx(2.5)
    assert (speed.running, speed.busy_slots) == ("ngram-mod", 1)
    assert (speed.drafting_requests, speed.plain_requests) == (30, 3)
    assert speed.acceptance == pytest.approx(0.2)
    assert speed.losing_s is None
    assert watch.verdict([NGRAM]) is None


def test_a_loss_that_lasts_is_judged(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    verdict = watch.verdict([NGRAM])
    assert verdict is not None
    assert verdict.code == "speculation_unprofitable"
    assert verdict.evidence["ratio"] == 0.4
    assert watch.speeds()[0].losing_s == 600.0


def test_a_loss_is_not_judged_before_its_time(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=12)
    assert watch.speeds()[0].losing_s == 540.0
    assert watch.verdict([NGRAM]) is None


def test_silence_proves_nothing(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=5)
    feed(watch, NGRAM, 4, minutes=1, begin_s=100_000)
    assert watch.verdict([NGRAM]) is None


def test_answers_that_gain_again_end_a_loss(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=8)
    feed(watch, NGRAM, 200, minutes=20, begin_s=500)
    assert watch.speeds()[0].losing_s is None


def test_without_a_baseline_there_is_no_speedup_and_no_verdict(watch: SpeculationWatch) -> None:
    feed(watch, NGRAM, 4, minutes=60)
    assert watch.speeds()[0].speedup is None
    assert watch.verdict([NGRAM]) is None


def test_numbers_of_busy_slots_are_not_mixed(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10, busy_slots=1)
    feed(watch, NGRAM, 4, minutes=60, busy_slots=4)
    assert watch.speeds()[0].speedup is None
    assert watch.verdict([NGRAM]) is None


def test_other_launches_are_no_baseline(watch: SpeculationWatch) -> None:
    feed(watch, replace(PLAIN, launch="another context"), 10)
    feed(watch, NGRAM, 4, minutes=60)
    assert watch.verdict([NGRAM]) is None


def test_ngrams_that_found_nothing_are_no_baseline(watch: SpeculationWatch) -> None:
    for _ in range(3):
        watch.note(replace(an_answer(NGRAM, 100), drafted=0, accepted=0))
    feed(watch, NGRAM, 4, minutes=13)
    assert watch.speeds()[0].plain_requests == 0
    assert watch.verdict([NGRAM]) is None


def test_drafts_of_a_process_that_is_said_to_have_none_are_no_baseline(watch: SpeculationWatch) -> None:
    for _ in range(3):
        watch.note(replace(an_answer(PLAIN, 100), drafted=9, accepted=9))
    feed(watch, NGRAM, 4, minutes=13)
    assert watch.speeds()[0].plain_requests == 0


def test_a_head_without_drafts_is_none(watch: SpeculationWatch) -> None:
    for _ in range(3):
        watch.note(replace(an_answer(HEAD, 10), drafted=0, accepted=0))
    assert watch.speeds()[0].plain_requests == 0


def test_short_answers_say_nothing(watch: SpeculationWatch) -> None:
    watch.note(an_answer(generated=LIMITS.min_tokens - 1))
    assert watch.speeds() == ()


def test_two_ways_of_drafting_are_told_apart(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 20)
    feed(watch, HEAD, 15)
    assert [(speed.running, speed.speedup) for speed in watch.speeds()] == [
        ("draft-mtp", pytest.approx(1.5)),
        ("ngram-mod", pytest.approx(2.0)),
    ]


def test_of_one_type_with_two_depths_the_newer_one_is_shown(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, HEAD, 15)
    feed(watch, replace(HEAD, means="head of depth 5"), 20)
    assert [speed.speedup for speed in watch.speeds()] == [pytest.approx(2.0)]


def test_what_does_not_serve_any_more_is_not_judged(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    assert watch.verdict([]) is None
    assert watch.verdict([replace(NGRAM, means="shorter drafts")]) is None


def test_a_verdict_is_shown_until_it_was_carried_out(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    watch.judged(NGRAM, 800.0)
    assert watch.verdict([NGRAM]) is not None


def test_the_speeds_that_were_judged_stay_to_be_seen(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    watch.judged(NGRAM, 800.0)
    feed(watch, PLAIN, 10, begin_s=900)
    assert watch.speeds()[0].speedup == pytest.approx(0.4)


def test_another_trial_starts_from_nothing(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    watch.judged(NGRAM, 800.0)
    feed(watch, replace(NGRAM, ready_at_s=90_000.0), 30, minutes=1, begin_s=90_001)
    (speed,) = watch.speeds()
    assert speed.drafting_requests == 1
    assert speed.speedup == pytest.approx(3.0)


def test_a_loss_shown_before_it_was_replaced_is_not_held_against_another_trial(
    watch: SpeculationWatch,
) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    watch.judged(NGRAM, 800.0)
    watch.note(an_answer(NGRAM, 4, at_s=810.0))
    feed(watch, replace(NGRAM, ready_at_s=90_000.0), 4, begin_s=90_001)
    assert watch.verdict([NGRAM]) is None


def test_a_replica_that_has_not_been_replaced_yet_is_no_new_trial(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    watch.judged(NGRAM, 800.0)
    watch.note(an_answer(NGRAM, 4, at_s=810.0))
    assert watch.speeds()[0].drafting_requests == 14


def test_a_baseline_outlives_the_manager(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    first = SpeculationWatch(SpeedStore(state), LIMITS)
    feed(first, PLAIN, 10)
    first.write(first.unsaved())
    assert first.unsaved() == {}
    later = SpeculationWatch(SpeedStore(state), LIMITS)
    feed(later, NGRAM, 20)
    assert later.speeds()[0].speedup == pytest.approx(2.0)


def test_what_came_last_is_written_down_at_the_end(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    watch = SpeculationWatch(SpeedStore(state), LIMITS)
    watch.note(an_answer(PLAIN, 10, at_s=0.0))
    watch.note(an_answer(PLAIN, 10, at_s=1.0))
    watch.write(watch.unsaved())
    (tally,) = SpeedStore(state).find(PLAIN.launch).values()
    assert tally.requests == 2


def test_memory_is_bounded_whatever_runs(watch: SpeculationWatch) -> None:
    for number in range(3 * MOST_PLACES):
        watch.note(an_answer(replace(HEAD, means=f"way {number}")))
    for number in range(3 * MOST_LAUNCHES):
        watch.note(an_answer(replace(HEAD, launch=f"launch {number}", running=f"type {number}")))
    assert len(watch.speeds()) <= MOST_LAUNCHES


def test_readers_get_speeds_verdict_and_what_is_needed_for_one(watch: SpeculationWatch) -> None:
    feed(watch, PLAIN, 10)
    feed(watch, NGRAM, 4, minutes=13)
    seen = watch.seen(watch.verdict([NGRAM]))
    assert seen.speeds == watch.speeds()
    assert seen.verdict is not None
    assert seen.needed_requests == 3
