"""What a replay counts, and what our policy promises: nobody is lost, nobody starves, few swaps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.planning.pools.cards import Card
from framework.planning.pools.policies import keep_all, lru_by_count, ours
from framework.planning.pools.simulation import END_S, Ask, Report, SimulatedModel, replay
from tests.planning.pools.shelf import GIB
from tests.support.offline_swaps import fewest_swaps

ONE = (Card("A", 16 * GIB),)
TWO = (Card("A", 16 * GIB), Card("B", 16 * GIB))
LOAD_S = 4.0
TURN_S = 30.0


def model(name: str, gib: int = 10, **changes: int) -> SimulatedModel:
    return SimulatedModel(name, gib * GIB, LOAD_S, **changes)


def at(moment_s: float, name: str, serve_s: float = 1.0) -> list[Ask]:
    """A request that comes at a time, whatever happens."""
    return [Ask(name, serve_s, moment_s)]


def replayed(
    clients: Sequence[Sequence[Ask]], names: str = "ab", cards: Sequence[Card] = ONE, gib: int = 10
) -> Report:
    return replay(clients, cards, [model(name, gib) for name in names], ours())


def test_the_first_request_waits_for_the_load_and_the_next_is_a_hit() -> None:
    report = replayed([at(0, "a"), at(20, "a")])
    assert (report.starts, report.swaps, report.hit_rate) == (1, 0, 0.5)
    assert (report.p50_wait_s, report.longest_wait_s) == (0.0, LOAD_S)


def test_requests_for_one_model_share_its_load() -> None:
    """PL-12."""
    report = replayed([at(0, "a") for _ in range(20)])
    assert (report.requests, report.starts) == (20, 1)


def test_another_model_waits_until_the_first_is_idle_has_ended_and_it_is_loaded() -> None:
    report = replayed([at(0, "a"), at(1, "b")])
    assert report.swaps == 1
    # From 1 s: a loads until 4, answers until 5, lingers for 0.3, ends in 1; then b loads.
    assert report.longest_wait_s == pytest.approx(4.0 + 0.3 + END_S + LOAD_S, abs=0.02)


def test_models_that_fit_together_stay() -> None:
    clients = [at(20.0 * n, "ab"[n % 2]) for n in range(10)]
    assert replayed(clients, cards=TWO).swaps == 0
    assert replayed(clients, gib=8).swaps == 0
    assert replayed(clients).swaps == 9


def test_one_that_is_larger_than_a_card_goes_on_both() -> None:
    report = replay([at(0, "big")], TWO, [model("big", 20)], ours())
    assert report.refused == 0
    assert all(held > 0 for held in report.peak_bytes.values())


def test_what_fits_nowhere_is_refused_and_has_waited_for_ever() -> None:
    report = replay([at(0, "huge"), at(1, "a")], ONE, [model("huge", 17), model("a")], ours())
    assert (report.requests, report.refused, report.p95_wait_s) == (2, 1, inf)


def test_a_pinned_model_stays_while_others_take_turns() -> None:
    """PL-21."""
    models = [SimulatedModel("p", 6 * GIB, LOAD_S, pinned=True), model("a"), model("b")]
    clients = [at(0, "p"), *(at(30.0 * n + 30, "ab"[n % 2]) for n in range(6)), at(300, "p")]
    report = replay(clients, ONE, models, ours())
    assert (report.starts, report.swaps) == (7, 5)


def test_a_flood_for_one_model_starves_no_other() -> None:
    flood = [at(0.2 * n, "a", serve_s=0.7) for n in range(1000)]
    lonely = at(10, "b")
    within_s = TURN_S + LOAD_S + END_S + 0.7
    assert replayed([*flood, lonely]).longest_wait_s <= within_s + 2 * LOAD_S + END_S
    by_count = replay([*flood, lonely], ONE, [model("a"), model("b")], lru_by_count(1))
    assert by_count.longest_wait_s > 150.0


def test_one_that_waits_for_a_card_does_not_hold_up_a_start_on_another() -> None:
    """`w` is too large for `B`: it waits until the answer of `a` is over, and `b` does not."""
    cards = (Card("A", 16 * GIB), Card("B", 6 * GIB))
    clients = [at(0, "a", serve_s=100.0), at(10, "w"), at(50, "b")]
    for priority in (0, 5):
        models = [model("a", 16), model("w", 12, priority=priority), model("b", 6)]
        report = replay(clients, cards, models, ours())
        waited_s = 100.0 + LOAD_S - 10.0 + END_S + LOAD_S
        assert report.longest_wait_s == pytest.approx(waited_s, abs=0.5)
        assert report.p50_wait_s == LOAD_S


def test_one_that_waits_for_a_pinned_model_holds_up_nobody() -> None:
    models = [model("p", 8, pinned=True), model("high", 12, priority=5), model("small", 6)]
    report = replay([at(0, "p"), at(10, "high"), at(11, "small")], ONE, models, ours())
    assert (report.refused, report.starts) == (1, 2)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 6),
    st.sampled_from([0.0, 0.05, 0.5, 5.0]),
    st.sampled_from([ONE, TWO]),
)
def test_nobody_waits_longer_than_promised_and_nothing_is_lost(
    seed: int, names: int, pause_s: float, cards: Sequence[Card]
) -> None:
    dice = random.Random(seed)
    models = [model(f"m{number}", dice.randint(5, 16), slots=64) for number in range(names)]
    longest_s = 8.0
    clients = [
        [Ask(dice.choice(models).name, dice.uniform(0.1, longest_s), pause_s) for _ in range(12)]
        for _ in range(8)
    ]
    report = replay(clients, cards, models, ours())
    # For each model that was first: it may be loading, serves as long as that took, answers, and ends.
    turn_s = LOAD_S + LOAD_S + longest_s + END_S
    assert (report.requests, report.refused) == (96, 0)
    assert report.longest_wait_s <= TURN_S + (names + 1) * turn_s
    assert max(report.peak_bytes.values()) <= 16 * GIB


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("serve_s", "pause_s"), [(0.3, 0.0), (0.3, 0.09), (2.0, 0.05), (5.0, 0.05)])
def test_swaps_are_few_though_nobody_knows_what_comes(seed: int, serve_s: float, pause_s: float) -> None:
    dice = random.Random(seed)
    asked = [[dice.choice("abc") for _ in range(16)] for _ in range(8)]
    clients = [[Ask(name, serve_s * dice.uniform(0.3, 2), pause_s) for name in names] for names in asked]
    report = replayed(clients, "abc")
    at_least, _ = fewest_swaps(asked)
    assert (report.requests, report.refused) == (8 * 16, 0)
    assert at_least <= report.swaps <= 1.5 * at_least


def test_eviction_by_count_knows_no_bytes() -> None:
    models = [model("small", 2), model("a"), model("b")]
    clients = [at(0, "small"), at(20, "a"), at(40, "b")]
    assert replay(clients, ONE, models, lru_by_count(1)).refused == 0
    # The small one was used least recently, and what it holds is not enough.
    assert replay(clients, ONE, models, lru_by_count(2)).refused == 1
    assert replay(clients, ONE, models, ours()).refused == 0


def test_keeping_all_refuses_what_comes_later() -> None:
    report = replay([at(0, "a"), at(20, "b"), at(40, "a")], ONE, [model("a"), model("b")], keep_all())
    assert (report.starts, report.swaps, report.refused) == (1, 0, 1)


def test_a_day_of_200_models_on_eight_cards_is_replayed_as_it_was_the_last_time() -> None:
    dice = random.Random(1)
    models = [model(f"m{number}", dice.choice([3, 6, 12, 24])) for number in range(200)]
    cards = [Card(f"C{number}", 80 * GIB) for number in range(8)]
    clients = [at(10.0 * n, models[int(200 * dice.random() ** 3)].name, 5.0) for n in range(800)]
    first = replay(clients, cards, models, ours())
    assert first == replay(clients, cards, models, ours())
    assert (first.requests, first.refused) == (800, 0)
