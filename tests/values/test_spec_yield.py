"""Which of several measured speeds stands for a model."""

from __future__ import annotations

from dataclasses import replace

from framework.values.spec_yield import SpecTotals, SpeedAt, best_known

FEW = SpeedAt("ngram-mod", 1, 5, 20.0, 0.5, 50, 10.0)
MANY = replace(FEW, busy_slots=2, drafting_requests=30, drafting_tokens_per_s=12.0)
OTHER = replace(FEW, running="draft-mtp", drafting_requests=500, plain_requests=500)
UNKNOWN = replace(FEW, drafting_requests=1000, plain_requests=0, plain_tokens_per_s=None)


def test_the_one_with_most_answers_on_its_weaker_side_stands_for_all() -> None:
    assert best_known([FEW, MANY, UNKNOWN]) == MANY


def test_only_what_runs_counts_where_that_is_said() -> None:
    assert best_known([FEW, OTHER], "ngram-mod") == FEW


def test_without_a_comparison_there_is_none() -> None:
    assert best_known([UNKNOWN]) is None


def test_a_speedup_is_the_quotient_and_unknown_without_a_baseline() -> None:
    assert FEW.speedup == 2.0
    assert UNKNOWN.speedup is None


def test_acceptance_is_unknown_where_nothing_was_drafted() -> None:
    assert SpecTotals().acceptance is None
    assert SpecTotals(drafted=4, accepted=1).acceptance == 0.25
