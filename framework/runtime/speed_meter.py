"""How fast one process answers and what it drafts, from its own timings and log (05 §11.7, 13 §5).

One for each instance, which tells it of every lease; the proxy leaves the timings of an answer on the lease.
Answers without usable timings, and those of several choices, are counted by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from framework.engines.draft_log import DraftStatistics, read_draft_statistics
from framework.runtime.busy_time import BusyTime, Mark
from framework.runtime.lease import Lease
from framework.runtime.speed_store import LEAST_S_PER_TOKEN
from framework.values.spec_yield import NO_TOTALS, AnswerSpeed, Drafting, SpecTotals

# One answer has at most as many tokens as the longest context there is.
MOST_TOKENS = 2**31
MS_PER_S = 1000.0
# No answer takes longer.
MOST_SECONDS = 24 * 3600.0
# The engine's own default too (15 §3).
NGRAMS = "ngram-mod"


class SpeedMeter:
    """Counts of one process. All calls come from one event loop."""

    def __init__(self) -> None:
        self.drafting: Drafting | None = None
        """What the process is; None until it is ready, and then nothing is measured."""
        self.slots = 0
        """Requests that it works on at once, 0 while unknown; more than these wait inside of it."""
        self._busy = BusyTime()
        self._marks: dict[Lease, Mark] = {}
        self._totals = NO_TOTALS
        self._statistics: dict[str, DraftStatistics] = {}

    def opened(self, lease: Lease, now_s: float) -> None:
        """A request begins."""
        self._marks[lease] = self._busy.begin(now_s)

    def closed(self, lease: Lease, now_s: float) -> AnswerSpeed | None:
        """A request has ended; its speed, where its timings tell one."""
        mark = self._marks.pop(lease, None)
        if mark is None:
            return None
        busy = max(1, round(self._busy.end(mark, now_s)))
        if self.drafting is None or lease.timings is None:
            return None
        speed = answer_speed(lease.timings, self.drafting, min(busy, self.slots or busy), now_s)
        if speed is not None:
            self._add(speed)
        return speed

    def saw_lines(self, lines: Iterable[str]) -> None:
        """Lines of the process's log, as they come."""
        if self.drafting is None or not self.drafting.means:
            return
        kinds = kinds_of(self.drafting.running)
        for line in lines:
            found = read_draft_statistics(line)
            # An engine prints grammars of its clients as they are, so a line may be anybody's.
            if found is not None and found.kind in kinds:
                self._statistics[found.kind] = found

    @property
    def totals(self) -> SpecTotals:
        """Everything since the process was ready. By position only where that agrees with the answers."""
        known = [statistics.accepted_by_position for statistics in self._statistics.values()]
        accepted = tuple(sum(column) for column in zip_longest(*known, fillvalue=0))
        drafts = sum(statistics.drafts for statistics in self._statistics.values())
        if drafts > self._totals.drafted or sum(accepted) > self._totals.drafted:
            return self._totals
        return replace(
            self._totals, drafted_by_position=(drafts,) * len(accepted), accepted_by_position=accepted
        )

    def _add(self, speed: AnswerSpeed) -> None:
        before = self._totals
        self._totals = SpecTotals(
            before.requests + 1,
            before.generated + speed.generated,
            before.drafted + speed.drafted,
            before.accepted + speed.accepted,
        )


def kinds_of(running: str) -> frozenset[str]:
    """The types whose statistics a process that drafts so may print; n-grams may stand before any other."""
    return frozenset(part.strip() for part in running.split(",")) | {NGRAMS}


def answer_speed(
    timings: Mapping[str, Any], by: Drafting, busy_slots: int, at_s: float
) -> AnswerSpeed | None:
    """The speed that timings of 15 §6 tell; None where they are no such timings."""
    generated, milliseconds = _count(timings.get("predicted_n")), timings.get("predicted_ms")
    if not generated or isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    if not LEAST_S_PER_TOKEN * generated <= milliseconds / MS_PER_S <= MOST_SECONDS:
        return None
    drafted = _count(timings.get("draft_n"))
    accepted = min(drafted, _count(timings.get("draft_n_accepted")))
    return AnswerSpeed(by, busy_slots, generated, milliseconds / MS_PER_S, drafted, accepted, at_s)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST_TOKENS else 0
