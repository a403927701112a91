"""What was probably meant: the nearest of the known words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# difflib's own default; "ctx" still finds "context".
SIMILAR_ENOUGH = 0.6
# Comparing is quadratic in the length, and nobody means a name by a text like that.
LONGEST_COMPARED = 100
MOST_COMPARED = 500


def nearest(word: str | None, known: Iterable[str], *, likeness: float = SIMILAR_ENOUGH) -> str:
    """The known word most like `word`, ignoring case; empty when none is as like it as `likeness`, 0 to 1."""
    if not word or len(word) > LONGEST_COMPARED:
        return ""
    by_folded = {name.lower(): name for name, _ in zip(known, range(MOST_COMPARED), strict=False)}
    close = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=likeness)
    return by_folded[close[0]] if close else ""
