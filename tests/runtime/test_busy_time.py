"""The mean number of requests during one of them."""

from __future__ import annotations

import pytest

from framework.runtime.busy_time import BusyTime


def test_a_request_that_is_alone_counts_itself() -> None:
    busy = BusyTime()
    mark = busy.begin(10.0)
    assert busy.end(mark, 14.0) == 1.0


def test_a_second_one_for_half_of_the_time_counts_half() -> None:
    busy = BusyTime()
    first = busy.begin(0.0)
    second = busy.begin(2.0)
    assert busy.end(second, 4.0) == 2.0
    assert busy.end(first, 4.0) == pytest.approx(1.5)


def test_what_was_before_does_not_count() -> None:
    busy = BusyTime()
    marks = [busy.begin(0.0) for _ in range(5)]
    for mark in marks:
        busy.end(mark, 100.0)
    alone = busy.begin(200.0)
    assert busy.end(alone, 201.0) == 1.0


def test_a_request_without_duration_counts_those_there_are() -> None:
    busy = BusyTime()
    busy.begin(5.0)
    mark = busy.begin(5.0)
    assert busy.end(mark, 5.0) == 2.0
