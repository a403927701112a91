"""Fractions as bars: how much of one is filled, and how wide that is in SVG. Pure."""

from __future__ import annotations


def width(fraction: float) -> str:
    """`42.0%`: a fraction as the width of an SVG element."""
    return f"{fraction * 100:.1f}%"


def share(part: float, whole: float) -> float:
    """`part` of `whole` as a fraction, kept within 0 and 1; 0 where there is no whole."""
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
