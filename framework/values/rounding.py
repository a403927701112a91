"""Numbers as they are shown to programs: no more digits than mean something."""

from __future__ import annotations


def rounded(value: float | None, digits: int) -> float | None:
    """To so many digits behind the point; None stays None."""
    return None if value is None else round(value, digits)
