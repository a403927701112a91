"""May a replica start now, who makes room for it, what does it wait for, or why can it never run (04 §16).

Pure: the dispatcher of a pool asks again whenever a lease, a start or a stop begins or ends, and after
`Wait.again_in_s`. In this order, the first that works:

1. As asked, into memory that is free, or will be once those have ended that were told to and serve nobody.
2. As asked, once idle residents made room.
3. With a shorter automatic context or fewer slots, into free memory; then once idle residents made room.
4. Wait for residents that serve, start or end. An overdue asker does not wait for a pause: those that serve
   get no new requests and leave when they have answered. What is starting is left alone.
5. Wait for its turn, where it is only in the way that others come first.
6. With layers or experts in host memory, idle residents leaving first where that keeps more on GPUs.
7. Refused: those that hold the memory never make room for this model, or the pool is too small.

Those that come first keep what they wait for: in 1 to 4 and 6 nothing of it is used.

Whoever gets `Evict` counts its plan as promised while the victims end, or somebody else takes what they give
back. It is asked again once they have ended, with nobody in `others_before`; and it is in nobody's. Whoever
was refused, and is left waiting until somebody ends, is in nobody's either: nothing is kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from framework.planning.pools import explanations
from framework.planning.pools.eviction import (
    choose_victims,
    fewest,
    is_idle,
    linger_s,
    may_leave_now,
    turn_left_s,
    why_kept,
)
from framework.planning.pools.turns import ahead, kept_bytes
from framework.values.device import HOST_NAME
from framework.values.plan import Placement
from framework.values.pool import Applicant, Claim, Freedom, Resident
from framework.values.reason import Reason

# Nobody asks again sooner: a clock that lags behind by a rounding error must not make a busy loop.
SOONEST_S = 0.01
AS_ASKED: tuple[Freedom, ...] = ("whole", "shrunk")
NOBODY: frozenset[str] = frozenset()


class Placed(Protocol):
    """A plan that says what it takes of each device."""

    @property
    def placement(self) -> Placement:
        """Where it goes, and what it takes there."""


P = TypeVar("P", bound=Placed)
Place = Callable[[frozenset[str], Freedom, Mapping[str, int]], "P | Reason"]
"""The plan within a freedom once these instances are gone too, or why there is none (`does_not_fit`). It must
never fit worse when more are gone. That an exclusive device is held by somebody comes out of it as well. So
many bytes by device are kept for others, as if they were promised to a start; that holds a device, too."""


@dataclass(frozen=True)
class Start(Generic[P]):
    """It fits now."""

    freedom: Freedom
    plan: P


@dataclass(frozen=True)
class Evict(Generic[P]):
    """These end first, in this order; those that serve when they have answered. `plan` is what fits then."""

    asker: Applicant
    victims: tuple[Resident, ...]
    freedom: Freedom
    plan: P

    def reason(self, victim: Resident) -> Reason:
        """`evicted_for`: why one of the victims leaves."""
        return explanations.evicted_for(victim, self.asker, self.plan.placement.counted_bytes)


@dataclass(frozen=True)
class Wait(Generic[P]):
    """Nothing can be done now. `plan` fits once the blockers are gone; it is None where others come first."""

    asker: Applicant
    blockers: tuple[Resident, ...] = ()
    ahead: tuple[Applicant, ...] = ()
    """Whose turn it is before."""
    plan: P | None = None
    again_in_s: float | None = None
    """Ask again after this if nothing happened before; None: not before something happens."""

    @property
    def reason(self) -> Reason:
        """`waiting_for_memory`: who holds how much, and what happens next."""
        needs = self.plan.placement.counted_bytes if self.plan else {}
        return explanations.waiting_for_memory(self.asker, needs, self.blockers, self.ahead)

    @property
    def claim(self) -> Claim | None:
        """What is to be kept for it from now on; None where it is not known yet what that will be."""
        if self.plan is None:
            return None
        return Claim(self.asker, self.plan.placement.needs_bytes, _names(self.blockers))


@dataclass(frozen=True)
class Refuse:
    """It cannot run as things are: `does_not_fit`, or `capacity_pinned` where a pin is the cause."""

    reason: Reason
    is_held: bool = False
    """Whether it would fit if somebody ended."""


Decision = Start[P] | Evict[P] | Wait[P] | Refuse


def decide(
    asker: Applicant,
    residents: Sequence[Resident],
    others_before: Sequence[Claim],
    place: Place[P],
    *,
    evict: Literal["idle", "never"] = "idle",
    offload: Literal["allow", "forbid"] = "allow",
) -> Decision[P]:
    """What happens to the asker now.

    `residents` are all instances on the devices of its pool, without what is promised to itself;
    `others_before` are the claims of those that wait in the pool, have no promise, and come before it
    (`turns.ordered`), in that order.
    """
    case = _Case(asker, residents, ahead(asker, others_before), place, evict == "idle")
    return (
        case.as_asked_now("whole")
        or case.as_asked_now("shrunk")
        or case.later(AS_ASKED)
        or case.after_others(AS_ASKED)
        or (case.offloaded() if offload == "allow" else None)
        or case.refused("offloaded" if offload == "allow" else "shrunk")
    )


class _Case(Generic[P]):
    """One question, with its facts sorted."""

    def __init__(
        self,
        asker: Applicant,
        residents: Sequence[Resident],
        rivals: tuple[Claim, ...],
        place: Place[P],
        may_evict: bool,
    ) -> None:
        self.asker = asker
        self.residents = residents
        self.rivals = rivals
        self.place = place
        self.may_evict = may_evict
        self.ending = _names(r for r in residents if r.holding == "leaving" and r.leases == 0)
        """What is about to be given back: worth waiting for before anybody else has to leave."""

    def as_asked_now(self, freedom: Freedom) -> Decision[P] | None:
        """Steps 1 to 3 for one freedom."""
        plan = self._plan(NOBODY, freedom)
        if plan is not None:
            return Start(freedom, plan)
        if self.ending and (plan := self._plan(self.ending, freedom)) is not None:
            return self._wait(self._leaving(), freedom, plan)
        return self._evict(freedom, self.ending)

    def later(self, freedoms: Sequence[Freedom]) -> Decision[P] | None:
        """Step 4: somebody holds the memory who will give it back, or can be asked for it."""
        leaving, in_time = self._leaving(), self._in_time()
        if all(r.instance in self.ending or may_leave_now(r, self.asker) for r in in_time):
            return None
        for freedom in freedoms:
            plan = self._plan(_names(in_time), freedom)
            if plan is None:
                continue
            if self.asker.is_overdue and self._plan(_names(leaving), freedom) is None:
                told = self._evict(freedom, _names(leaving), may_interrupt_turns=True)
                if told is not None:
                    return told
            return self._wait(in_time, freedom, plan)
        return None

    def after_others(self, freedoms: Sequence[Freedom]) -> Wait[P] | None:
        """Step 5. Whoever is first may also hold the memory longer than that; then it is asked again."""
        gone = _names(self._in_time())
        if not self.rivals or all(isinstance(self.place(gone, f, {}), Reason) for f in freedoms):
            return None
        return Wait(
            self.asker,
            ahead=tuple(claim.applicant for claim in self.rivals),
            again_in_s=self._soonest(()),
        )

    def offloaded(self) -> Decision[P] | None:
        """Step 6."""
        plan, best = self._plan(NOBODY, "offloaded"), None
        idle = _names(r for r in self.residents if may_leave_now(r, self.asker)) if self.may_evict else NOBODY
        if idle:
            best = self._plan(idle, "offloaded")
        if best is not None and (plan is None or _on_gpus(best) > _on_gpus(plan)):
            return self._evict("offloaded", NOBODY, at_least=_on_gpus(best))
        if plan is not None:
            return Start("offloaded", plan)
        return self.later(("offloaded",)) or self.after_others(("offloaded",))

    def refused(self, freedom: Freedom) -> Refuse:
        """Step 7. Whether somebody's memory would be enough decides what is said."""
        everybody = _names(self.residents)
        found = self.place(everybody, freedom, {})
        if isinstance(found, Reason):
            return Refuse(found)
        kept = [r for r in self.residents if not self.may_evict or why_kept(r, self.asker)]
        unpinned = _names(r for r in self.residents if r not in kept or (r.pinned and self.may_evict))
        needs = found.placement.counted_bytes
        # What other pools hold of host memory is hardly ever the cause.
        kept = [r for r in kept if r.pool == self.asker.pool] or kept
        pinned = [r for r in kept if r.pinned]
        if pinned and not isinstance(self.place(unpinned, freedom, {}), Reason):
            return Refuse(explanations.capacity_pinned(self.asker, needs, pinned), is_held=True)
        held = explanations.held_by_others(self.asker, needs, kept, may_evict=self.may_evict)
        return Refuse(held, is_held=True)

    def _plan(self, gone: frozenset[str], freedom: Freedom) -> P | None:
        kept: Mapping[str, int] = {}
        if self.rivals:
            kept = kept_bytes(self.rivals, (r for r in self.residents if r.instance not in gone))
        found = self.place(gone, freedom, kept)
        return None if isinstance(found, Reason) else found

    def _evict(
        self, freedom: Freedom, base: frozenset[str], *, may_interrupt_turns: bool = False, at_least: int = 0
    ) -> Evict[P] | None:
        if not self.may_evict:
            return None
        plans: dict[frozenset[str], P] = {}

        def fits(gone: frozenset[str]) -> bool:
            plan = self._plan(gone | base, freedom)
            if plan is None or (at_least and _on_gpus(plan) < at_least):
                return False
            plans[gone] = plan
            return True

        victims = choose_victims(self.asker, self.residents, fits, may_interrupt_turns=may_interrupt_turns)
        return None if victims is None else Evict(self.asker, victims, freedom, plans[_names(victims)])

    def _leaving(self) -> list[Resident]:
        return [r for r in self.residents if r.holding == "leaving"]

    def _in_time(self) -> list[Resident]:
        """Who makes room sooner or later, those that do so soonest first: what ends already; idle ones; those
        that serve, by what is left of their turn; those that start, in their order. Because of that, what
        starts beside the blockers of a claim never makes its wait longer."""
        could = [r for r in self.residents if r.holding != "leaving" and why_kept(r, self.asker) is None]
        could.sort(key=lambda r: (r.holding == "promised", not is_idle(r), _ready_to_leave_in_s(r)))
        return self._leaving() + (could if self.may_evict else [])

    def _wait(self, candidates: Sequence[Resident], freedom: Freedom, plan: P) -> Wait[P]:
        """For as few of the candidates as it takes. `plan` is the one with all of them gone."""
        blockers = fewest(candidates, lambda gone: self._plan(gone, freedom) is not None) or tuple(candidates)
        plan = self._plan(_names(blockers), freedom) or plan
        again_in_s = self._soonest([_ready_to_leave_in_s(r) for r in blockers])
        return Wait(self.asker, blockers, plan=plan, again_in_s=again_in_s)

    def _soonest(self, moments_s: Iterable[float]) -> float | None:
        """The first of these moments and its own, when it is overdue; None if there is none to come."""
        due = [moment for moment in moments_s if moment > 0]
        if self.asker.waiting and not self.asker.is_overdue:
            due.append(self.asker.turn_after_s - self.asker.oldest_wait_s)
        return max(min(due), SOONEST_S) if due else None


def _ready_to_leave_in_s(resident: Resident) -> float:
    """Until it may be told to end, as far as time alone decides that."""
    if resident.holding != "resident":
        return 0.0
    return turn_left_s(resident) if resident.leases else max(0.0, linger_s(resident) - resident.idle_s)


def _on_gpus(plan: Placed) -> int:
    return sum(held for name, held in plan.placement.needs_bytes.items() if name != HOST_NAME)


def _names(residents: Iterable[Resident]) -> frozenset[str]:
    return frozenset(resident.instance for resident in residents)
