"""Whose turn it is among those that wait for memory (08 §2.10)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from framework.planning.pools.turns import ahead, kept_bytes, ordered
from framework.values.pool import Claim
from tests.planning.pools.shelf import GIB, asker, claim, overdue, resident


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
        claim(overdue("late")),
        claim(asker("high", priority=1)),
        claim(asker("equal")),
        claim(overdue("elsewhere", pool="other")),
        claim(overdue("new", replica=1)),
    ]
    assert [c.applicant.model for c in ahead(asker(), before)] == ["late", "high"]


def test_what_blockers_give_back_need_not_be_kept_of_what_is_free() -> None:
    residents = [resident("a", 6), resident("b", 20)]
    assert kept_bytes([claim(overdue("x"), 10, "a")], residents) == {"A": 4 * GIB}
    assert kept_bytes([claim(overdue("x"), 10, "b")], residents) == {}
    assert kept_bytes([claim(overdue("x"), 10, "gone")], residents) == {"A": 10 * GIB}


def test_what_a_blocker_gives_back_counts_for_one_claim_only() -> None:
    claims = [claim(overdue("x"), 10, "b"), claim(overdue("y"), 12, "b")]
    assert kept_bytes(claims, [resident("b", 20)]) == {"A": 2 * GIB}


def test_what_is_left_over_by_the_blockers_of_one_is_not_counted_for_another() -> None:
    """It may give up; the other still gets what it waits for."""
    claims = [claim(overdue("x"), 6, "b"), claim(overdue("y"), 8, "a")]
    assert kept_bytes(claims, [resident("b", 20), resident("a", 2)]) == {"A": 6 * GIB}


some_claims = st.lists(
    st.builds(
        lambda gib, blockers: claim(overdue("x"), gib, *blockers),
        st.integers(1, 20),
        st.sets(st.sampled_from("abcd")),
    ),
    max_size=4,
)


@given(some_claims, st.lists(st.integers(0, 9), min_size=4, max_size=4), st.sampled_from("abcd"))
def test_nothing_fits_worse_when_one_more_is_gone(claims: list[Claim], gibs: list[int], gone: str) -> None:
    residents = [resident(name, gib) for name, gib in zip("abcd", gibs, strict=True)]
    given_back = next(r for r in residents if r.instance == gone).total_bytes
    with_it = kept_bytes(claims, residents).get("A", 0)
    without = kept_bytes(claims, [r for r in residents if r.instance != gone]).get("A", 0)
    assert with_it <= without <= with_it + given_back
