"""Whose turn it is among those that wait for memory (08 §2.10)."""

from __future__ import annotations

from framework.planning.pools.turns import ahead, ordered
from tests.planning.pools.shelf import asker, overdue


def names(*applicants: object) -> list[str]:
    return [a.model for a in ordered(applicants)]  # type: ignore[arg-type]


def test_the_oldest_of_those_that_waited_too_long_comes_first() -> None:
    young, old = overdue("young", priority=9), overdue("old", oldest_wait_s=60.0)
    assert names(asker("new", priority=9, waiting=99), young, old) == ["old", "young", "new"]


def test_then_the_higher_priority_then_where_most_wait_then_the_oldest() -> None:
    few_old = asker("few", waiting=2, oldest_wait_s=9.0)
    few_young = asker("fewer", waiting=2, oldest_wait_s=1.0)
    most, high = asker("most", waiting=5), asker("high", priority=1)
    assert names(few_young, few_old, most, high) == ["high", "most", "few", "fewer"]


def test_models_loaded_from_the_start_come_by_priority_and_else_as_they_are_declared() -> None:
    starts = [asker(name, waiting=0, priority=p) for name, p in (("a", 0), ("b", 5), ("c", 0), ("d", 5))]
    assert names(*starts) == ["b", "d", "a", "c"]


def test_a_start_that_nobody_waits_for_is_never_overdue() -> None:
    assert not overdue(waiting=0).is_overdue


def test_what_fits_is_held_up_only_by_overdue_ones_and_higher_priorities_of_its_pool() -> None:
    before = [
        overdue("late"),
        asker("high", priority=1),
        asker("equal"),
        overdue("elsewhere", pool="other"),
        overdue("new", replica=1),
    ]
    assert [a.model for a in ahead(asker(), before)] == ["late", "high"]
