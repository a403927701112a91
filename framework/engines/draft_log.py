"""What an engine logs about its drafts: how often the token at each position of a draft was right. Pure.

The answers themselves say only how many tokens were drafted and accepted. Lines are hostile: only numbers of
a likely size are taken out of them. Called by runtime.speed_meter for each line of a process that drafts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# With `-lv 4` (15 §3): `0.04.976.884 I spec common_specu: statistics draft-simple: ... #gen drafts = 1, ...
# #acc rate/pos = (1.000, 0.500), dur(b,g,a) = ...`, counted over all slots since the start of the process.
PREFIX = re.compile(r"[\d.]{1,24} I spec\s[^:]{1,40}: statistics\s{1,40}([a-z0-9-]{1,40}): ")
DRAFTS = re.compile(r"#gen drafts =\s{0,20}(\d{1,15}),")
RATES = re.compile(r"#acc rate/pos = \(([\d., ]{1,4000})\)")
MARK = ": statistics "
# The longest drafts of any type; a line that claims more is nobody's statistics.
MOST_POSITIONS = 64


@dataclass(frozen=True)
class DraftStatistics:
    """What one type has drafted since the process started."""

    kind: str
    """`draft-mtp`, `ngram-mod` ..."""
    drafts: int
    accepted_by_position: tuple[int, ...]


def read_draft_statistics(line: str) -> DraftStatistics | None:
    """The numbers of one line; None for any other, and for one without rates."""
    if MARK not in line:
        return None
    head, drafts, rates = PREFIX.match(line), DRAFTS.search(line), RATES.search(line)
    if head is None or drafts is None or rates is None:
        return None
    texts = rates[1].split(",")[:MOST_POSITIONS]
    try:
        shares = [min(1.0, float(text)) for text in texts]
    except ValueError:
        return None
    total = int(drafts[1])
    return DraftStatistics(head[1], total, tuple(round(share * total) for share in shares))
