"""When drafting pays, and what is said when it does not (05 §11.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.speculation.profit import (
    DEFAULT_LIMITS,
    Tally,
    counts_as_plain,
    inactive,
    is_slower,
    unprofitable,
)
from framework.values.spec_yield import AnswerSpeed, SpecTotals
from tests.support.answers import HEAD, NGRAM, PLAIN, an_answer


def tally(requests: int, tokens_per_s: float) -> Tally:
    return Tally(requests, tokens=tokens_per_s * requests, seconds=float(requests))


@pytest.mark.parametrize(
    ("drafting", "plain", "slower"),
    [
        pytest.param(tally(20, 9.6), tally(20, 10), True, id="below the margin"),
        pytest.param(tally(20, 9.8), tally(20, 10), False, id="within the margin"),
        pytest.param(tally(20, 15), tally(20, 10), False, id="faster"),
        pytest.param(tally(19, 5), tally(20, 10), None, id="too few answers with drafting"),
        pytest.param(tally(20, 5), tally(19, 10), None, id="too few answers without"),
        pytest.param(Tally(), Tally(), None, id="none at all"),
        pytest.param(Tally(30), Tally(30), None, id="answers without time"),
    ],
)
def test_a_loss_needs_enough_answers_of_both(drafting: Tally, plain: Tally, slower: bool | None) -> None:
    assert is_slower(drafting, plain, DEFAULT_LIMITS) is slower


def test_a_speed_is_that_of_recent_answers() -> None:
    sums = Tally()
    for _ in range(1000):
        sums = sums.plus(an_answer(tokens_per_s=100), DEFAULT_LIMITS.window_requests)
    for _ in range(1000):
        sums = sums.plus(an_answer(tokens_per_s=10), DEFAULT_LIMITS.window_requests)
    assert sums.tokens_per_s == pytest.approx(10, rel=0.01)


def test_long_answers_count_for_more_than_short_ones() -> None:
    sums = Tally()
    for answer in (an_answer(tokens_per_s=10, generated=900), an_answer(tokens_per_s=100, generated=100)):
        sums = sums.plus(answer, DEFAULT_LIMITS.window_requests)
    assert sums.tokens_per_s == pytest.approx(1000 / 91)


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0.1, 1000)), min_size=1, max_size=300))
def test_a_mean_lies_between_the_slowest_and_the_fastest_answer(answers: list[tuple[int, float]]) -> None:
    sums = Tally()
    for generated, speed in answers:
        sums = sums.plus(an_answer(tokens_per_s=speed, generated=generated), 50)
    speeds = [speed for _, speed in answers]
    assert sums.tokens_per_s is not None
    assert min(speeds) * 0.999 <= sums.tokens_per_s <= max(speeds) * 1.001


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        pytest.param(an_answer(PLAIN, drafted=0, accepted=0), True, id="nothing drafts"),
        pytest.param(replace(an_answer(PLAIN), drafted=9), False, id="drafts that the engine hid"),
        pytest.param(an_answer(NGRAM, drafted=0, accepted=0), False, id="n-grams that found nothing"),
        pytest.param(an_answer(NGRAM), False, id="n-grams that drafted"),
        pytest.param(an_answer(HEAD, drafted=0, accepted=0), False, id="a head costs without drafts too"),
    ],
)
def test_only_processes_without_drafting_tell_the_plain_speed(answer: AnswerSpeed, plain: bool) -> None:
    assert counts_as_plain(answer) is plain


def test_the_reason_has_the_numbers_and_what_the_watch_does() -> None:
    reason = unprofitable("ngram-mod", 2, tally(25, 8), tally(30, 10), 700.0)
    assert reason is not None
    assert reason.code == "speculation_unprofitable"
    assert "8.0 tokens/s for each request against 10.0, 0.80 times, with 2 busy slots" in reason.message
    assert "by a restart" in reason.remedy
    assert reason.evidence["ratio"] == 0.8


def test_a_drafter_that_never_drafts_is_said_to_be_inactive() -> None:
    reason = inactive("draft-simple", SpecTotals(requests=2, generated=100))
    assert reason is not None
    assert reason.code == "speculation_inactive"


@pytest.mark.parametrize(
    ("running", "totals"),
    [
        pytest.param("draft-simple", SpecTotals(requests=2, generated=99), id="too few tokens to say"),
        pytest.param("draft-simple", SpecTotals(requests=2, generated=500, drafted=1), id="it drafted"),
        pytest.param("ngram-mod", SpecTotals(requests=2, generated=500), id="n-grams need a repetition"),
        pytest.param("none", SpecTotals(requests=2, generated=500), id="nothing is to draft"),
        pytest.param(None, SpecTotals(requests=2, generated=500), id="unknown"),
    ],
)
def test_what_may_well_draft_later_is_not_called_inactive(running: str | None, totals: SpecTotals) -> None:
    assert inactive(running, totals) is None
