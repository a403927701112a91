"""Numbers, times and foreign text as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.dashboard import formats
from tests.dashboard.samples import GIB, MIB


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
    assert formats.size(count_bytes) == text


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
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1 token"), (0, "0 tokens"), (4096, "4,096 tokens"), (None, "\u2013")]
)
def test_tokens_carry_their_unit(number: int | None, text: str) -> None:
    assert formats.tokens(number) == text


def test_an_unknown_rate_is_a_dash_and_no_guess() -> None:
    assert formats.rate(None) == "\u2013"


def test_a_rate_carries_its_unit() -> None:
    assert formats.rate(1234.56) == "1,234.6 tokens/s"


@pytest.mark.parametrize(
    ("part", "whole", "fraction"), [(1, 4, 0.25), (5, 4, 1.0), (-1, 4, 0.0), (3, 0, 0.0)]
)
def test_a_share_stays_between_nothing_and_all(part: int, whole: int, fraction: float) -> None:
    assert formats.share(part, whole) == fraction


def test_a_time_is_shown_in_the_zone_of_the_machine_and_named_in_utc() -> None:
    at = datetime(2026, 3, 4, 23, 5, 6, 789000, tzinfo=UTC)
    assert formats.stamp(at, timezone(timedelta(hours=2))) == "5 Mar 01:05:06"
    assert formats.iso(at) == "2026-03-04T23:05:06.789Z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain ü 漢字 🐎", "plain ü 漢字 🐎", id="letters-stay"),
        pytest.param("a\u202egpj.exe", "a\\u202egpj.exe", id="direction-override"),
        pytest.param("a\x1b[31mred\x07", "a\\x1b[31mred\\x07", id="terminal-control"),
        pytest.param("a\u200bb", "a\\u200bb", id="invisible-blank"),
        pytest.param("a\ud800b", "a\\ud800b", id="lone-surrogate"),
        pytest.param("a\tb\nc", "a\tb\nc", id="tabs-and-lines-stay"),
    ],
)
def test_invisible_characters_are_written_out(text: str, shown: str) -> None:
    assert formats.visible(text) == shown


@given(st.text())
def test_whatever_is_shown_can_be_sent(text: str) -> None:
    formats.visible(text).encode("utf-8")


def test_a_width_is_a_percentage_for_svg() -> None:
    assert formats.width(0.4216) == "42.2%"
