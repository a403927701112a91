"""Ways to share a pool, for comparison by replay: ours, and what others do. Pure; for simulation and bench.

Every policy answers the same question as `decision.decide`, so that a replay differs in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from framework.planning.pools.decision import (
    NOBODY,
    Decision,
    Evict,
    P,
    Place,
    Refuse,
    Start,
    Wait,
    decide,
)
from framework.planning.pools.turns import ordered
from framework.values.pool import Applicant, Claim, Resident
from framework.values.reason import Reason


class Choose(Protocol):
    """What happens to an asker now; see `decide`."""

    def __call__(
        self, asker: Applicant, residents: Sequence[Resident], before: Sequence[Claim], place: Place[P]
    ) -> Decision[P]:
        """The decision."""


@dataclass(frozen=True)
class Policy:
    """Whose turn it is, and what happens to whom."""

    name: str
    order: Callable[[Iterable[Applicant]], list[Applicant]]
    choose: Choose


def ours() -> Policy:
    """By bytes: what does not fit waits its turn, and as few as possible of the longest idle make room."""

    def choose(
        asker: Applicant, residents: Sequence[Resident], before: Sequence[Claim], place: Place[P]
    ) -> Decision[P]:
        return decide(asker, residents, before, place, offload="forbid")

    return Policy("ours", ordered, choose)


def keep_all() -> Policy:
    """What was loaded stays; once memory is full, everything else is refused."""

    def choose(
        asker: Applicant, residents: Sequence[Resident], before: Sequence[Claim], place: Place[P]
    ) -> Decision[P]:
        return _start_or_refuse(place)

    return Policy("keep all", _first_come, choose)


def lru_by_count(most: int) -> Policy:
    """At most `most` models at once: for one more, the least recently used one leaves, whatever it holds.

    As the router of llama-server does with `--models-max`, but kinder: it never cuts off an answer, and waits
    for somebody to be idle instead. A start for which there are too few bytes fails.
    """

    def choose(
        asker: Applicant, residents: Sequence[Resident], before: Sequence[Claim], place: Place[P]
    ) -> Decision[P]:
        if before:
            return Wait(asker, ahead=tuple(claim.applicant for claim in before))
        if len(residents) < most:
            return _start_or_refuse(place)
        idle = [r for r in residents if r.holding == "resident" and r.leases == 0]
        if not idle:
            return Wait(asker, blockers=tuple(residents))
        victim = max(idle, key=lambda r: (r.idle_s, r.instance))
        plan = place(frozenset({victim.instance}), "whole", {})
        if isinstance(plan, Reason):
            return Refuse(plan)
        return Evict(asker, (victim,), "whole", plan)

    return Policy(f"LRU, {most} models", _first_come, choose)


def _start_or_refuse(place: Place[P]) -> Decision[P]:
    plan = place(NOBODY, "whole", {})
    return Refuse(plan) if isinstance(plan, Reason) else Start("whole", plan)


def _first_come(applicants: Iterable[Applicant]) -> list[Applicant]:
    return sorted(applicants, key=lambda a: -a.oldest_wait_s)
