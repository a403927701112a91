"""What waits to be written is bounded, keeps its order, and counts what had to go."""

from __future__ import annotations

from framework.telemetry.pending import Pending


def queue(*sizes: int, most: int = 5, most_bytes: int = 100) -> Pending[int]:
    """A queue of numbers that weigh as much as they say."""
    made: Pending[int] = Pending(most, most_bytes, lambda size: size)
    for size in sizes:
        made.put(size)
    return made


def test_of_too_many_the_oldest_is_lost() -> None:
    waiting = queue(1, 2, 3, 4, 5, 6, 7)
    assert waiting.lost == 2
    assert waiting.take(9, 100) == [3, 4, 5, 6, 7]


def test_of_too_much_the_oldest_is_lost_and_one_alone_is_kept() -> None:
    waiting = queue(60, 50, 40)
    assert (waiting.lost, waiting.take(9, 100)) == (1, [50, 40])
    assert queue(500).take(1, 10) == [500]


def test_a_batch_is_bounded_in_number_and_weight() -> None:
    waiting = queue(10, 20, 30, 5, 5)
    assert waiting.take(2, 100) == [10, 20]
    assert waiting.take(9, 36) == [30, 5]
    assert waiting.take(9, 36) == [5]
    assert waiting.take(9, 36) == []


def test_what_was_put_back_comes_first_and_goes_first() -> None:
    waiting = queue(1, 2, 3)
    taken = waiting.take(2, 100)
    waiting.put(4)
    waiting.put_back(taken)
    assert waiting.take_all() == [1, 2, 3, 4]
    waiting.put_back([1, 2, 3, 4, 5, 6])
    assert (waiting.lost, waiting.take(9, 100)) == (1, [2, 3, 4, 5, 6])
