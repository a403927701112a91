"""What the engine's own statistics of drafts come to; lines as build b10068 writes them with `-lv 4`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.draft_log import MOST_POSITIONS, DraftStatistics, read_draft_statistics

LINE = (
    "0.22.326.957 I spec common_specu: statistics        ngram-mod: #calls(b,g,a) =    2    206     52, "
    "#gen drafts =     52, #acc drafts =    26, #gen tokens =    759, #acc tokens =   192, "
    "#mean acc len = 4.69, #acc rate/pos = (0.500, 0.288, 0.019), dur(b,g,a) = 0.1, 0.2, 0.3 ms"
)
WITHOUT_RATES = (
    "0.04.976.875 I spec common_specu: statistics     ngram-simple: #calls(b,g,a) =    1      1      0, "
    "#gen drafts =      0, #acc drafts =     0, #gen tokens =      0, #acc tokens =     0, "
    "dur(b,g,a) = 0.002, 0.004, 0.000 ms"
)


def test_rates_become_counts() -> None:
    assert read_draft_statistics(LINE) == DraftStatistics("ngram-mod", 52, (26, 15, 1))


def test_a_type_that_has_drafted_nothing_has_no_rates() -> None:
    assert read_draft_statistics(WITHOUT_RATES) is None


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("user said: " + LINE, id="not at the start of a line"),
        pytest.param(LINE.replace("(0.500", "(0.5.0"), id="no number"),
        pytest.param(LINE.replace("=     52,", "= " + "9" * 40 + ","), id="a number of no likely size"),
        pytest.param(LINE.replace("I spec", "I slot"), id="of another part"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_line_that_is_something_else_says_nothing(line: str) -> None:
    assert read_draft_statistics(line) is None


def test_no_more_positions_are_taken_than_a_draft_can_have() -> None:
    long = LINE.replace("(0.500, 0.288, 0.019)", "(" + ", ".join(["1.000"] * 500) + ")")
    found = read_draft_statistics(long)
    assert found is not None
    assert found.accepted_by_position == (52,) * MOST_POSITIONS


def test_a_rate_above_one_counts_as_one() -> None:
    found = read_draft_statistics(LINE.replace("0.500", "99999.0"))
    assert found is not None
    assert found.accepted_by_position[0] == 52


@given(st.text(max_size=200).map(lambda text: LINE[:60] + text + LINE[60:]))
def test_whatever_stands_in_a_line_it_is_read_without_a_fault(line: str) -> None:
    found = read_draft_statistics(line)
    assert found is None or all(0 <= count <= found.drafts for count in found.accepted_by_position)
