"""The helper that says how few swaps would have been enough."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.offline_swaps import fewest_swaps


@pytest.mark.parametrize(
    ("clients", "capacity", "swaps"),
    [
        ([], 1, 0),
        (["aaa", "aa"], 1, 0),
        (["ab", "ba"], 1, 2),
        (["abcabc"] * 8, 1, 5),
        (["abc", "bca", "cab"], 1, 4),
        (["abab", "abab"], 2, 0),
        (["abcabc"], 2, 2),
        (["abcd"], 3, 1),
    ],
)
def test_the_fewest_swaps_are_found(clients: list[str], capacity: int, swaps: int) -> None:
    assert fewest_swaps(clients, capacity) == (swaps, swaps)


def shortest_supersequence(first: str, second: str) -> int:
    """Length, by the table that every textbook has."""
    row = list(range(len(second) + 1))
    for done, a in enumerate(first, start=1):
        row, above = [done], row
        for at, b in enumerate(second, start=1):
            row.append(above[at - 1] + 1 if a == b else 1 + min(above[at], row[at - 1]))
    return row[-1]


def without_repeats(asked: str) -> str:
    return "".join(b for a, b in zip("-" + asked, asked, strict=False) if a != b)


@given(st.text("abc", min_size=1, max_size=12), st.text("abc", min_size=1, max_size=12))
def test_with_room_for_one_it_is_a_shortest_common_supersequence(first: str, second: str) -> None:
    length = shortest_supersequence(without_repeats(first), without_repeats(second))
    assert fewest_swaps([first, second]) == (length - 1, length - 1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text("abcd", min_size=1, max_size=20), min_size=1, max_size=6), st.integers(1, 3))
def test_the_bound_is_never_above_what_was_found(clients: list[str], capacity: int) -> None:
    at_least, found = fewest_swaps(clients, capacity)
    assert 0 <= at_least <= found
