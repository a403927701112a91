"""Numbers, durations and moments as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from framework.values import units_text

MIB = 2**20
GIB = 2**30


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [
        pytest.param(0, "0 B", id="nothing"),
        pytest.param(1023, "1023 B", id="bytes"),
        pytest.param(1024, "1 KiB", id="whole"),
        pytest.param(1536, "1.5 KiB", id="half"),
        pytest.param(98 * MIB, "98 MiB", id="a-small-model"),
        pytest.param(int(9.25 * GIB), "9.2 GiB", id="one-digit"),
        pytest.param(24 * GIB, "24 GiB", id="a-card"),
        pytest.param(1 << 62, "4096 PiB", id="huge"),
        pytest.param(None, "\u2013", id="unknown"),
    ],
)
def test_sizes_are_binary_with_a_unit(count_bytes: int | None, text: str) -> None:
    assert units_text.size(count_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0.44, "0.4 s", id="fraction"),
        pytest.param(3.0, "3 s", id="whole"),
        pytest.param(42.4, "42 s", id="seconds"),
        pytest.param(60, "1 min", id="minute"),
        pytest.param(185, "3 min 5 s", id="minutes"),
        pytest.param(7800, "2 h 10 min", id="hours"),
        pytest.param(3 * 86400 + 3600, "3 d 1 h", id="days"),
        pytest.param(None, "\u2013", id="unknown"),
    ],
)
def test_durations_show_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert units_text.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1 token"), (0, "0 tokens"), (4096, "4,096 tokens"), (None, "\u2013")]
)
def test_tokens_carry_their_unit(number: int | None, text: str) -> None:
    assert units_text.tokens(number) == text


def test_an_unknown_rate_is_a_dash_and_no_guess() -> None:
    assert units_text.rate(None) == "\u2013"


def test_a_rate_carries_its_unit() -> None:
    assert units_text.rate(1234.56) == "1,234.6 tokens/s"


def test_a_time_is_shown_in_the_zone_of_the_machine() -> None:
    at = datetime(2026, 3, 4, 23, 5, 6, 789000, tzinfo=UTC)
    assert units_text.stamp(at, timezone(timedelta(hours=2))) == "5 Mar 01:05:06"
