"""Fractions as bars."""

from __future__ import annotations

import pytest

from framework.dashboard import formats


@pytest.mark.parametrize(
    ("part", "whole", "fraction"), [(1, 4, 0.25), (5, 4, 1.0), (-1, 4, 0.0), (3, 0, 0.0)]
)
def test_a_share_stays_between_nothing_and_all(part: int, whole: int, fraction: float) -> None:
    assert formats.share(part, whole) == fraction


def test_a_width_is_a_percentage_for_svg() -> None:
    assert formats.width(0.4216) == "42.2%"
