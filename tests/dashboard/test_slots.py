"""The slots grid, also for what other engine builds say of their slots."""

from __future__ import annotations

from typing import Any

import pytest

from framework.dashboard.pages.slots import SlotCell, slot_grid
from framework.values.instance import Slot
from tests.dashboard import samples


def cell(slot: Slot) -> SlotCell:
    return slot_grid("s", samples.instance(samples.request(), slots=(slot,))).cells[0]


def test_a_busy_slot_shows_context_prompt_and_drafts() -> None:
    found = cell(samples.busy_slot())
    assert (found.state, found.context_share, found.prompt_share) == ("generating", 0.375, 1.0)
    assert (found.drafted, found.accepted, found.acceptance) == (200, 150, 0.75)


def test_the_head_counts_busy_slots() -> None:
    rates = slot_grid("s", samples.instance(samples.request())).rates
    assert (rates.busy, rates.slots) == (2, 4)


def test_a_slot_tells_how_far_it_drafts_and_why_not() -> None:
    found = cell(samples.busy_slot(draft={"drafted": 9, "accepted": 0, "depth": 0, "reason": "baseline"}))
    assert (found.depth, found.why_not) == (0, "baseline")


@pytest.mark.parametrize(
    "draft",
    [None, {}, {"drafted": None}, {"drafted": "12"}, {"drafted": True}, {"depth": 3}],
    ids=["none", "empty", "null", "text", "bool", "other"],
)
def test_unknown_draft_facts_stay_unknown(draft: dict[str, Any] | None) -> None:
    found = cell(samples.busy_slot(draft=draft))
    assert (found.drafted, found.accepted, found.acceptance) == (None, None, None)


def test_nothing_drafted_yet_is_no_acceptance() -> None:
    assert cell(samples.busy_slot(draft={"drafted": 0, "accepted": 0})).acceptance is None


def test_a_context_of_unknown_size_shows_an_empty_bar() -> None:
    assert cell(samples.busy_slot(context_limit=0)).context_share == 0.0


def test_more_tokens_than_fit_do_not_leave_the_bar() -> None:
    assert cell(samples.busy_slot(context_tokens=9999)).context_share == 1.0


def test_a_state_of_another_engine_is_shown_as_it_calls_it() -> None:
    assert cell(samples.slot(state="shifting")).state == "shifting"


@pytest.mark.parametrize(("age_s", "shown_s"), [(4.9, None), (7.2, 5.0), (63.0, 60.0)])
def test_an_old_sample_says_so_in_coarse_steps(age_s: float, shown_s: float | None) -> None:
    assert cell(samples.busy_slot(stale_s=age_s)).stale_s == shown_s


@pytest.mark.parametrize(("in_flight", "shown_s"), [(0, None), (1, 720.0)], ids=["at rest", "at work"])
def test_an_idle_slot_is_as_it_was_unless_something_runs(in_flight: int, shown_s: float | None) -> None:
    idle = samples.instance(samples.request(), slots=(samples.slot(stale_s=723.0),), inflight=in_flight)
    assert slot_grid("s", idle).cells[0].stale_s == shown_s


def test_an_engine_without_slot_facts_is_no_error() -> None:
    grid = slot_grid("s", samples.instance(samples.request(), slots=()))
    assert grid.absent == "The engine has not told its slots yet."
