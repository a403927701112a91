"""Start, make room, wait or refuse (04 §16, 08 §2.10), and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from framework.planning.pools.decision import AS_ASKED, Decision, Evict, Refuse, Start, Wait, decide
from framework.values.pool import Applicant, Claim, Freedom, Resident
from tests.planning.pools.shelf import GIB, TOO_SMALL, Plan, Pool, asker, claim, overdue, resident


def decided(
    residents: list[Resident],
    needs: dict[Freedom, float] | float,
    who: Applicant | None = None,
    before: tuple[Claim, ...] = (),
    **changes: Any,
) -> Decision[Plan]:
    """What is decided on a GPU of 16 GiB."""
    needs_gib: dict[Freedom, float] = needs if isinstance(needs, dict) else {"whole": needs}
    return decide(who or asker(), residents, before, Pool(residents, needs_gib).place, **changes)


def leaving(decision: Decision[Plan]) -> list[str]:
    assert isinstance(decision, Evict)
    return [r.instance for r in decision.victims]


def blockers(decision: Decision[Plan]) -> list[str]:
    assert isinstance(decision, Wait)
    return [r.instance for r in decision.blockers]


def test_what_fits_starts_and_nobody_leaves() -> None:
    decision = decided([resident("a", 8)], 8)
    assert isinstance(decision, Start)
    assert decision.freedom == "whole"


def test_idle_ones_make_room_before_anything_is_made_smaller() -> None:
    decision = decided([resident("a", 8)], {"whole": 12, "shrunk": 6})
    assert leaving(decision) == ["a"]
    assert isinstance(decision, Evict)
    assert decision.freedom == "whole"


def test_a_shorter_context_starts_at_once_where_nobody_can_leave() -> None:
    decision = decided([resident("a", 8, leases=1)], {"whole": 12, "shrunk": 6})
    assert isinstance(decision, Start)
    assert decision.freedom == "shrunk"


def test_a_shorter_context_is_worth_an_idle_one_that_leaves() -> None:
    decision = decided([resident("a", 8, pinned=True), resident("b", 8)], {"whole": 12, "shrunk": 6})
    assert leaving(decision) == ["b"]
    assert isinstance(decision, Evict)
    assert decision.freedom == "shrunk"


@pytest.mark.parametrize(
    "state",
    [{"leases": 1}, {"holding": "promised"}, {"holding": "leaving"}, {"holding": "leaving", "leases": 3}],
    ids=["serves", "starts", "ends", "ends and serves"],
)
def test_it_waits_for_one_that_will_give_its_memory_back(state: dict[str, Any]) -> None:
    assert blockers(decided([resident("a", 16, **state)], 8)) == ["a"]


def test_what_is_about_to_be_given_back_is_waited_for_before_anybody_else_leaves() -> None:
    residents = [resident("ending", 8, holding="leaving"), resident("idle", 8)]
    assert blockers(decided(residents, 8)) == ["ending"]
    assert leaving(decided(residents, 16)) == ["idle"]


def test_one_that_still_answers_before_it_ends_is_not_waited_for_when_another_is_idle() -> None:
    residents = [resident("ending", 8, holding="leaving", leases=1), resident("idle", 8)]
    assert leaving(decided(residents, 8)) == ["idle"]


def test_nobody_is_interrupted_for_one_that_has_not_waited_long() -> None:
    decision = decided([resident("a", 16, leases=1)], 8, asker(oldest_wait_s=12.0))
    assert isinstance(decision, Wait)
    assert decision.again_in_s == 18.0


def test_those_that_serve_give_way_to_one_that_has_waited_too_long() -> None:
    assert leaving(decided([resident("a", 16, leases=1)], 8, overdue())) == ["a"]


def test_what_is_starting_is_left_alone_however_long_others_have_waited() -> None:
    """PL-10."""
    assert blockers(decided([resident("a", 16, holding="promised")], 8, overdue())) == ["a"]


def test_an_overdue_one_does_not_send_more_away_while_enough_is_ending() -> None:
    residents = [resident("ending", 8, holding="leaving", leases=1), resident("busy", 8, leases=1)]
    assert blockers(decided(residents, 8, overdue())) == ["ending"]


def test_one_that_was_just_used_is_looked_at_again_once_its_pause_is_over() -> None:
    decision = decided([resident("a", 16, idle_s=0.04)], 8)
    assert isinstance(decision, Wait)
    assert decision.again_in_s == pytest.approx(0.06)


def test_a_clock_that_lags_by_a_rounding_error_makes_no_busy_loop() -> None:
    decision = decided([resident("a", 16, idle_s=0.1 - 1e-12)], 8)
    assert isinstance(decision, Wait)
    assert decision.again_in_s is not None
    assert decision.again_in_s >= 0.01


@pytest.mark.parametrize("first", [overdue("first"), asker("first", priority=1)], ids=["overdue", "priority"])
def test_nobody_starts_into_memory_that_another_waits_for(first: Applicant) -> None:
    decision = decided([], 8, before=(claim(first, 12),))
    assert isinstance(decision, Wait)
    assert decision.ahead == (first,)
    assert decision.claim is None
    assert decision.again_in_s == 30.0


def test_others_that_wait_do_not_hold_up_what_fits() -> None:
    assert isinstance(decided([], 8, before=(claim(asker("first"), 12),)), Start)


HIGH = asker("high", priority=5, load="at-start", waiting=0)


def test_what_fits_beside_what_another_waits_for_starts() -> None:
    """Of 14 GiB that the first needs, the resident gives back 10; so 4 of the 6 that are free are kept."""
    busy = resident("busy", 10, leases=1)
    before = (claim(HIGH, 14, "busy"),)
    assert isinstance(decided([busy], 2, before=before), Start)
    assert isinstance(decided([busy], 3, before=before), Wait)


def test_what_another_waits_for_is_not_given_away_by_sending_its_blockers_away_either() -> None:
    residents = [resident("idle", 8), resident("busy", 8, leases=1)]
    before = (claim(HIGH, 12, "idle", "busy"),)
    assert leaving(decided(residents, 4, before=before)) == ["idle"]
    assert isinstance(decided(residents, 5, before=before), Wait)


def test_a_claim_on_one_device_leaves_the_others_to_anybody() -> None:
    assert isinstance(decided([], 8, before=(claim(overdue("first"), 16, device="B"),)), Start)


def test_what_it_waits_for_is_its_plan_once_its_blockers_are_gone() -> None:
    """Not the one with everybody gone: others may start beside the one, and make the other take longer."""
    residents = [resident("ending", 8, holding="leaving", leases=1), resident("busy", 8, leases=1)]
    needs: dict[Freedom, float] = {"whole": 20, "shrunk": 18, "offloaded": 0}
    pool = Pool(residents, needs)

    def place(gone: frozenset[str], freedom: Freedom, kept: Mapping[str, int]) -> Any:
        return pool.place(gone, freedom, kept) if gone else TOO_SMALL

    decision = decide(overdue(), residents, (), place)
    assert isinstance(decision, Wait)
    assert decision.claim is not None
    assert decision.claim.blockers == {"ending"}
    assert decision.claim.needs["A"] == 8 * GIB


def test_those_whose_turn_ends_first_are_waited_for() -> None:
    """So whatever starts beside them, the wait does not get longer."""
    late = resident("late", 8, leases=1, ready_s=1.0, start_s=9.0)
    soon = resident("soon", 8, leases=1, ready_s=7.0, start_s=9.0)
    starting = resident("starting", 0, holding="promised")
    decision = decided([starting, late, soon], 8, overdue())
    assert blockers(decision) == ["soon"]
    assert isinstance(decision, Wait)
    assert decision.again_in_s == 2.0


def test_whoever_cannot_run_at_all_is_not_told_to_wait_for_its_turn() -> None:
    before = (claim(overdue("first"), 12),)
    assert decided([], 20, before=before, offload="forbid") == Refuse(TOO_SMALL)
    decision = decided([resident("p", 8, pinned=True)], 12, before=before)
    assert isinstance(decision, Refuse)
    assert decision.reason.code == "capacity_pinned"


def test_layers_do_not_go_to_host_memory_because_it_is_the_turn_of_another() -> None:
    before = (claim(overdue("first"), 12),)
    assert isinstance(decided([], {"whole": 8, "offloaded": 0}, before=before), Wait)


@pytest.mark.parametrize(
    ("residents", "gib", "is_held"),
    [
        ([], 20, False),
        ([resident("p", 8, pinned=True)], 12, True),
        ([resident("r", 8, priority=1)], 12, True),
    ],
    ids=["larger than the pool", "a pin", "a higher priority"],
)
def test_a_refusal_says_whether_the_end_of_others_would_lift_it(
    residents: list[Resident], gib: float, is_held: bool
) -> None:
    decision = decided(residents, gib)
    assert isinstance(decision, Refuse)
    assert decision.is_held is is_held


def test_a_process_that_outlived_its_kill_is_not_waited_for() -> None:
    stuck = resident("stuck", 8, holding="stuck")
    assert leaving(decided([stuck, resident("idle", 8)], 8)) == ["idle"]
    assert blockers(decided([stuck, resident("busy", 8, leases=1)], 8)) == ["busy"]
    decision = decided([stuck], 12)
    assert isinstance(decision, Refuse)
    assert decision.is_held
    assert decision.reason.message == (
        "new needs 12 GiB of A, and nobody makes room for it: stuck holds 8 GiB of A (it was killed and does"
        " not end)."
    )
    assert decision.reason.remedy.startswith("The system must let go of the process first")


def test_layers_go_to_host_memory_only_when_waiting_would_not_help() -> None:
    needs: dict[Freedom, float] = {"whole": 20, "shrunk": 18, "offloaded": 4}
    decision = decided([], needs)
    assert isinstance(decision, Start)
    assert decision.freedom == "offloaded"
    assert isinstance(decided([resident("a", 16, leases=1)], {"whole": 16, "offloaded": 0}), Wait)


def test_idle_ones_leave_where_that_keeps_more_layers_on_gpus() -> None:
    needs: dict[Freedom, float] = {"whole": 20, "offloaded": 4}
    assert leaving(decided([resident("a", 8)], needs)) == ["a"]
    assert isinstance(decided([resident("a", 8)], needs, evict="never"), Start)


def test_without_offload_it_is_refused_with_what_the_planner_says() -> None:
    decision = decided([], {"whole": 20, "offloaded": 4}, offload="forbid")
    assert decision == Refuse(TOO_SMALL)


def test_a_pin_that_is_in_the_way_is_named() -> None:
    """PL-19, PL-21: the pinned one stays, and whoever needs its memory hears so."""
    decision = decided([resident("keeper", 8, pinned=True), resident("a", 8)], 12)
    assert isinstance(decision, Refuse)
    assert decision.reason.code == "capacity_pinned"
    assert decision.reason.message == (
        "new needs 12 GiB of A, and what is pinned never makes room: keeper holds 8 GiB of A."
    )
    assert decision.reason.remedy.startswith("Remove pin = true from keeper")


def test_only_what_is_not_pinned_is_considered() -> None:
    """PL-21: P is pinned, A makes room for B, B for A."""
    pinned = resident("P", 8, pinned=True, idle_s=9000.0)
    assert leaving(decided([pinned, resident("A", 8)], 8, asker("B"))) == ["A"]
    assert leaving(decided([pinned, resident("B", 8)], 8, asker("A"))) == ["B"]


def test_a_manual_load_is_no_pin() -> None:
    """PL-19."""
    assert leaving(decided([resident("A", 16, load="manual")], 8, asker("B"))) == ["A"]


def test_one_that_serves_finishes_and_the_other_waits() -> None:
    """PL-09, capacity for one."""
    decision = decided([resident("A", 16, leases=1)], 16, asker("B"))
    assert blockers(decision) == ["A"]
    assert isinstance(decision, Wait)
    assert decision.reason.message == (
        "B needs 16 GiB of A: A holds 16 GiB of A (answers 1 request). They make room when idle; in 30 s they"
        " take no more requests and leave."
    )


def test_replicas_of_one_model_do_not_replace_each_other() -> None:
    decision = decided([resident("new/0", 16, model="new")], 16, asker(replica=1))
    assert isinstance(decision, Refuse)
    assert decision.reason.code == "does_not_fit"
    assert "it is a replica of the same model" in decision.reason.message


def test_a_higher_priority_is_refused_nothing_by_a_lower_one() -> None:
    residents = [resident("a", 16, priority=5, leases=1)]
    decision = decided(residents, 8, overdue())
    assert isinstance(decision, Refuse)
    assert "its priority is 5, above 0" in decision.reason.message


def test_a_pool_that_evicts_nobody_refuses_and_says_how_to_change_that() -> None:
    decision = decided([resident("a", 16)], 8, evict="never")
    assert isinstance(decision, Refuse)
    assert 'evict = "idle" in pools.default' in decision.reason.remedy


def test_a_pool_that_evicts_nobody_still_waits_for_what_is_ending() -> None:
    assert blockers(decided([resident("a", 16, holding="leaving")], 8, evict="never")) == ["a"]
    draining = resident("a", 16, holding="leaving", leases=1)
    assert blockers(decided([draining], 8, evict="never")) == ["a"]


def test_why_somebody_leaves_names_both_sides() -> None:
    decision = decided([resident("a", 16, idle_s=90.0)], 8)
    assert isinstance(decision, Evict)
    reason = decision.reason(decision.victims[0])
    assert reason.code == "evicted_for"
    assert reason.message == (
        "a makes room for new, after 1 min 30 s without a request: new needs 8 GiB of A, and a holds 16 GiB"
        " of A."
    )
    assert reason.evidence["for"] == "new"


def test_waiting_behind_others_says_behind_whom() -> None:
    decision = decided([], 8, before=(claim(overdue("first")), claim(asker("second", priority=2))))
    assert isinstance(decision, Wait)
    assert decision.reason.message == (
        "new waits for its turn: first comes first (waiting for 31 s) and second (priority 2)."
    )


def test_few_plans_are_made_for_a_decision() -> None:
    """A plan takes milliseconds, and the pool may be full of small models."""
    residents = [resident(f"m{number}", 0.5, idle_s=float(number + 1)) for number in range(32)]
    pool = Pool(residents, {"whole": 1})
    assert isinstance(decide(asker(), residents, (), pool.place), Evict)
    assert len(pool.asked) <= 10
    assert AS_ASKED == ("whole", "shrunk")


@pytest.mark.parametrize("holding", ["resident", "leaving", "promised"])
def test_a_device_for_one_process_is_waited_for_and_nothing_else_is_used_instead(holding: str) -> None:
    """MN-08: only with its holder gone there is a place, and none on other devices besides host memory."""
    holder = resident("a", 1, holding=holding)
    plan = Pool([], {"whole": 1}).place(frozenset(), "whole", {})

    def place(gone: frozenset[str], freedom: Freedom, kept: Mapping[str, int]) -> Any:
        return plan if holder.instance in gone or freedom == "offloaded" else TOO_SMALL

    decision = decide(asker(), [holder], (), place)
    assert isinstance(decision, Evict if holding == "resident" else Wait)


def test_a_place_with_enough_of_its_own_memory_sends_nobody_away() -> None:
    """FM-24: what decides is the memory that the plan uses, whatever else is short."""
    idle = resident("small", 0.6)
    assert isinstance(decided([idle], 15), Start)
