"""Sizes, durations and rates: what is taken, what is refused and with which advice."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.manifest.bad_value import BadValue
from framework.manifest.units import (
    Rate,
    duration_text,
    parse_duration,
    parse_rate,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("64MiB", 64 * 2**20),
        ("64 MiB", 64 * 2**20),
        (" 1.5GiB ", 3 * 2**29),
        ("1KiB", 1024),
        ("2KB", 2000),
        ("3MB", 3_000_000),
        ("4GB", 4_000_000_000),
        ("0KiB", 0),
    ],
)
def test_sizes_are_bytes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("30s", 30), ("10m", 600), ("1.5h", 5400), ("2d", 172_800)]
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("120/min", Rate(120, 60.0)),
        ("5 / s", Rate(5, 1.0)),
        ("2000000/day", Rate(2_000_000, 86400.0)),
        ("7/h", Rate(7, 3600.0)),
    ],
)
def test_rates_are_counts_per_period(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("value", [10, 1.5, "10", " 10 "], ids=repr)
def test_a_bare_number_is_told_which_units_there_are(value: Any) -> None:
    with pytest.raises(BadValue) as caught:
        parse_duration(value)
    assert caught.value.code == "unit_missing"
    assert "ms s m h d" in caught.value.must_be
    assert caught.value.suggestion == f'"{str(value).strip()}s"'


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("64mib", '"64MiB"'), ("64MIB", '"64MiB"'), ("5kb", '"5KB"'), ("64M", ""), ("64TiB", ""), ("64 x", "")],
)
def test_a_wrong_unit_of_a_size_is_put_right_where_that_is_certain(text: str, suggestion: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_size(text)
    assert (caught.value.code, caught.value.suggestion) == ("bad_unit", suggestion)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "s",
        "-5s",
        "1h30m",
        "1e3s",
        "nan s",
        "inf s",
        "٣s",
        "5s\n5s",
        "9" * 40 + "s",
        True,
        None,
        [],
        {},
    ]
    + [float("nan"), float("inf"), 10**40, -1],
    ids=repr,
)
def test_anything_else_is_no_duration(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_duration(value)


@pytest.mark.parametrize(
    "value", ["120", "120/week", "/min", "1.5/s", "-1/s", "", 120, None, [], True], ids=repr
)
def test_anything_else_is_no_rate(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_rate(value)


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    with suppress(BadValue):
        assert parse_size(text) >= 0


@given(st.integers(0, 2**20))
def test_a_written_size_reads_back_the_same(kib: int) -> None:
    assert abs(parse_size(size_text(kib * 1024)) - kib * 1024) <= kib * 1024 * 1e-5


@given(st.integers(0, 10**7))
def test_a_written_duration_reads_back_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(duration_text(seconds)) == pytest.approx(seconds, rel=1e-5)
