"""Who makes room for a start, and who is kept (04 §16.2, §16.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.pools.eviction import (
    LINGER_S,
    LONGEST_LINGER_S,
    choose_victims,
    linger_s,
    next_to_leave,
)
from framework.values.pool import Resident
from tests.planning.pools.shelf import GIB, asker, resident


def needs(residents: Sequence[Resident], gib: float) -> Callable[[frozenset[str]], bool]:
    """It fits once so much is given back."""
    return lambda gone: sum(r.total_bytes for r in residents if r.instance in gone) >= gib * GIB


def victims(residents: Sequence[Resident], gib: float, **changes: Any) -> list[str] | None:
    found = choose_victims(asker(**changes), residents, needs(residents, gib))
    return None if found is None else [r.instance for r in found]


@pytest.mark.parametrize(
    "kept",
    [
        {"pinned": True},
        {"leases": 1},
        {"holding": "promised"},
        {"holding": "leaving"},
        {"holding": "stuck"},
        {"priority": 1},
        {"load": "at-start"},
        {"model": "new"},
        {"pool": "other"},
        {"idle_s": LINGER_S / 2},
        {"idle_s": 1.0, "start_s": 60.0, "ready_s": 1.0, "leases": 1},
    ],
    ids=str,
)
def test_nobody_else_is_asked_to_leave(kept: dict[str, Any]) -> None:
    assert victims([resident("a", **kept)], 1) is None


@pytest.mark.parametrize(
    "leaves",
    [{}, {"load": "manual"}, {"priority": -1}, {"load": "at-start", "priority": -1}, {"idle_s": LINGER_S}],
    ids=str,
)
def test_an_idle_one_of_no_higher_priority_makes_room(leaves: dict[str, Any]) -> None:
    assert victims([resident("a", **leaves)], 1) == ["a"]


def test_a_model_to_be_loaded_from_the_start_leaves_only_for_a_higher_priority() -> None:
    kept = resident("a", load="at-start", priority=3)
    assert victims([kept], 1, priority=3) is None
    assert victims([kept], 1, priority=4) == ["a"]


def test_the_lowest_priority_leaves_first_then_the_longest_unused_then_the_largest() -> None:
    residents = [
        resident("recent", 1, idle_s=5.0),
        resident("old", 1, idle_s=900.0),
        resident("low", 1, idle_s=1.0, priority=-1),
        resident("large", 2, idle_s=900.0),
    ]
    assert victims(residents, 1) == ["low"]
    assert victims(residents, 5) == ["low", "large", "old", "recent"]
    assert next_to_leave(residents) == ("low", "large", "old", "recent")


def test_a_small_idle_model_does_not_leave_for_nothing() -> None:
    residents = [resident("small", 1, idle_s=900.0), resident("large", 8, idle_s=5.0)]
    assert victims(residents, 8) == ["large"]


def test_nobody_leaves_when_all_together_are_not_enough() -> None:
    assert victims([resident("a", 4), resident("b", 4)], 9) is None


def test_those_that_serve_are_asked_only_when_nobody_else_is_enough() -> None:
    residents = [resident("busy", 8, leases=2), resident("idle", 8)]

    def chosen(gib: float) -> list[str]:
        found = choose_victims(asker(), residents, needs(residents, gib), may_interrupt_turns=True)
        return [r.instance for r in found or ()]

    assert chosen(8) == ["idle"]
    assert chosen(16) == ["idle", "busy"]


@pytest.mark.parametrize(
    ("state", "is_asked"),
    [
        ({"leases": 2, "ready_s": 9.0, "start_s": 10.0}, False),
        ({"leases": 2, "ready_s": 10.0, "start_s": 10.0}, True),
        ({"leases": 0, "idle_s": 0.0, "ready_s": 0.0}, False),
        ({"leases": 1, "holding": "promised"}, False),
    ],
    ids=["ready for less than its start took", "for as long", "no request yet", "starting"],
)
def test_a_fresh_one_is_not_interrupted_before_it_was_worth_its_start(
    state: dict[str, Any], is_asked: bool
) -> None:
    residents = [resident("a", **state)]
    found = choose_victims(asker(), residents, needs(residents, 1), may_interrupt_turns=True)
    assert (found is not None) is is_asked


def test_the_pause_that_counts_as_idle_grows_with_the_time_of_a_start() -> None:
    starts = (0.0, 1.0, 2.0, 600.0)
    pauses = [linger_s(resident("a", start_s=start_s)) for start_s in starts]
    assert pauses == [LINGER_S, LINGER_S, pytest.approx(0.2), LONGEST_LINGER_S]


def test_pages_leave_out_what_never_leaves_and_show_those_that_serve_last() -> None:
    residents = [
        resident("pinned", pinned=True),
        resident("starting", holding="promised"),
        resident("ending", holding="leaving"),
        resident("busy", leases=1, priority=-5),
        resident("always", load="at-start", idle_s=900.0),
        resident("idle"),
    ]
    assert next_to_leave(residents) == ("idle", "always", "busy")


some_residents = st.lists(
    st.builds(
        resident,
        st.uuids().map(str),
        st.integers(1, 9),
        idle_s=st.sampled_from([0.0, 1.0, 60.0]),
        leases=st.integers(0, 1),
        priority=st.integers(-1, 1),
        pinned=st.booleans(),
    ),
    max_size=9,
)


@given(some_residents, st.integers(1, 40))
def test_whoever_leaves_is_enough_and_nobody_of_them_is_too_many(residents: list[Resident], gib: int) -> None:
    fits = needs(residents, gib)
    found = choose_victims(asker(), residents, fits)
    could = [r for r in residents if not (r.leases or r.pinned or r.priority > 0 or r.idle_s < LINGER_S)]
    if found is None:
        assert not could or not fits(frozenset(r.instance for r in could))
        return
    names = frozenset(r.instance for r in found)
    assert all(resident in could for resident in found)
    assert fits(names)
    assert not any(fits(names - {name}) for name in names)
