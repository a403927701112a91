"""The queue for the memory of one pool, and its dispatcher (04 §16, 08 §2.10).

Whenever something changed the dispatcher goes through those that wait in the order of their turns, lets
`planning.pools.decision` decide in a thread, and does what it says. Between the last look at the ledger and
the promise in it nothing is awaited, so no two starts count the same bytes. Called by runtime.admission.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from framework.planning.pools.decision import Decision, Evict, Refuse, Start, Wait
from framework.planning.pools.turns import ordered
from framework.runtime.ledger import Ledger
from framework.runtime.memory_return import MemoryReturn
from framework.runtime.planner import Prepared
from framework.runtime.planning import Planning
from framework.runtime.question import Question
from framework.runtime.seeker import Moved, Seeker, Standing, Unwanted
from framework.telemetry.events import EventLog
from framework.values.device import Device
from framework.values.plan import LaunchPlan, Section
from framework.values.pool import Applicant, Claim, Resident
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import PoolLimits

log = logging.getLogger(__name__)

# What other programs do to memory is seen by looking again; while no request waits, that may take longer.
LOOK_S, RARE_LOOK_S = 2.0, 30.0
# Many things change at once, and each look costs some milliseconds of all cores.
PAUSE_S, RARE_PAUSE_S = 0.03, 1.0
# A start of higher order whose files are still being read goes first, unless that takes long.
PATIENCE_S = 5.0
# What a start depends on may change while it waits: files, engine, manifest.
PREPARED_FOR_S = 60.0
# A ledger that changes while a thread decides makes that worthless.
TRIES = 3


class PoolQueue:
    """Those that wait for the memory of one pool. Belongs to one event loop."""

    def __init__(
        self, name: str, ledger: Ledger, planner: Planning, events: EventLog, returning: MemoryReturn
    ) -> None:
        self.name = name
        self.evictions = 0
        """Instances that made room for others so far."""
        self.planner = planner
        self._ledger = ledger
        self._events = events
        self._returning = returning
        self._seekers: list[Seeker] = []
        self._wake = asyncio.Event()
        self._dispatcher: asyncio.Task[None] | None = None

    async def answer(self, seeker: Seeker) -> LaunchPlan:
        """Wait until memory was set aside for a start. Raises Refused, Unwanted and Moved."""
        loop, clock = asyncio.get_running_loop(), self._ledger.clock
        standing = seeker.standing = Standing(clock(), loop.create_future())
        self._seekers.append(seeker)
        try:
            standing.prepared, standing.prepared_s = await seeker.prepare(), clock()
            self.wake()
            if self._dispatcher is None or self._dispatcher.done():
                self._dispatcher = asyncio.create_task(self._dispatch())
            return await standing.answer
        except BaseException:
            self._spare(standing)
            raise
        finally:
            self._seekers.remove(seeker)
            seeker.standing = None
            self.wake()

    async def fits_beside(self, seeker: Seeker, plan: LaunchPlan) -> bool:
        """Whether a start gets the very plan that it has while everybody stays who holds anything.

        Not while somebody waits: what it takes beside the one that it will replace would be theirs. REQUIRES:
        the memory is promised to it.
        """
        try:
            prepared = await seeker.prepare()
            for _ in range(TRIES):
                devices = await self._returning.devices(
                    lambda *, fresh: self.planner.look(prepared, fresh=fresh)
                )
                version = self._ledger.version
                residents = self._ledger.residents(besides=(seeker.instance.name,))
                beside = await asyncio.to_thread(
                    self.planner.place, prepared, devices, residents, freedom="whole", ceilings={}
                )
                # Where nobody knows whether it fits, the plan is the same however full a device is.
                if self._is_waited_for or beside.fit.fits is not True or not _starts_alike(beside, plan):
                    return False
                if self._ledger.version == version:
                    return True
        except Refused:
            return False
        return False

    def wake(self) -> None:
        """Something changed: holders, requests that wait, a resident that fell idle."""
        self._wake.set()

    def waiting(self) -> tuple[Seeker, ...]:
        """Those that wait for memory, in the order of their turns."""
        return tuple(seeker for seeker in self._in_turn() if seeker.verdict is not None)

    def has(self, model: str) -> bool:
        """Whether a replica of a model is in the queue."""
        return any(seeker.instance.request.id == model for seeker in self._seekers)

    def standing(self, instance: str) -> Standing | None:
        """Where an instance stands; None where it is not in the queue."""
        return next((one.standing for one in self._seekers if one.instance.name == instance), None)

    # The dispatcher

    async def _dispatch(self) -> None:
        while self._seekers:
            is_woken = self._wake.is_set()
            self._wake.clear()
            try:
                await self._consider_all(is_woken=is_woken)
            except Exception:
                log.exception("deciding about memory failed")
            await asyncio.sleep(PAUSE_S if self._is_asked_for else RARE_PAUSE_S)
            try:
                await asyncio.wait_for(self._wake.wait(), self._next_look_s())
            except TimeoutError:
                continue

    async def _consider_all(self, *, is_woken: bool) -> None:
        """All of them where something has changed; else the first, and those for whom time has."""
        before: list[Claim] = []
        turns = list(self._in_turn())
        for place, seeker in enumerate(turns):
            standing = seeker.standing
            if standing is None or standing.answer.done():
                continue
            if seeker.instance.request.pool.name != self.name:
                standing.answer.set_exception(Moved())
                continue
            if standing.prepared is None:
                if self._ledger.clock() - standing.since_s < PATIENCE_S:
                    return
                continue
            if not seeker.is_wanted():
                standing.answer.set_exception(Unwanted())
                continue
            try:
                if is_woken or place == 0 or standing.again_in_s is not None:
                    await self._consider(seeker, standing, before, turns[place + 1 :])
            except Exception as fault:
                if not isinstance(fault, Refused | Unwanted):
                    log.exception("planning %s failed", seeker.instance.name)
                if not standing.answer.done():
                    standing.answer.set_exception(fault)
            is_promised = self._ledger.holds(seeker.instance)
            if standing.claim is not None and not is_promised and not standing.answer.done():
                before.append(replace(standing.claim, applicant=seeker.asks()))

    async def _consider(
        self, seeker: Seeker, standing: Standing, before: Sequence[Claim], after: Sequence[Seeker]
    ) -> None:
        """Decide about one start and do it.

        What those `after` it were promised, because others make room for them, is not in its way, or two
        could wait for each other.
        """
        besides = (seeker.instance.name, *(other.instance.name for other in after))
        prepared = await self._prepared(seeker, standing)
        for _ in range(TRIES):
            devices = await self._returning.devices(lambda *, fresh: self.planner.look(prepared, fresh=fresh))
            version = self._ledger.version
            residents = self._ledger.residents(besides=besides)
            question = Question(
                seeker.asks(),
                tuple(r for r in residents if r.instance not in seeker.gone),
                tuple(r for r in residents if r.instance in seeker.gone),
                tuple(before),
                prepared,
                tuple(devices),
                seeker.ceilings,
                self.planner,
                _limits(seeker),
            )
            decision = await asyncio.to_thread(question)
            if standing.answer.done():
                return
            if not seeker.is_wanted():
                raise Unwanted
            if self._ledger.version == version and self._still_idle(decision):
                self._act(seeker, standing, decision, devices)
                return
        self.wake()

    async def _prepared(self, seeker: Seeker, standing: Standing) -> Prepared:
        known, age_s = standing.prepared, self._ledger.clock() - standing.prepared_s
        if known is None or age_s > PREPARED_FOR_S or known.request != seeker.instance.request:
            known = standing.prepared = await seeker.prepare()
            standing.prepared_s = self._ledger.clock()
        return known

    def _still_idle(self, decision: Decision[LaunchPlan]) -> bool:
        """Whether those that are to leave because they serve nobody still serve nobody."""
        if not isinstance(decision, Evict):
            return True
        now = {resident.instance: resident.leases for resident in self._ledger.residents()}
        return all(victim.leases or not now.get(victim.instance) for victim in decision.victims)

    def _act(
        self, seeker: Seeker, standing: Standing, decision: Decision[LaunchPlan], devices: Sequence[Device]
    ) -> None:
        standing.again_in_s = standing.claim = None
        match decision:
            case Start(plan=plan):
                # It fits beside those that still answer, so they need not leave.
                self._spare(standing)
                self._promise(seeker, plan, devices)
                standing.answer.set_result(plan)
            case Evict(victims=victims, plan=plan):
                # Promised before they end, or somebody else takes what they give back.
                self._promise(seeker, plan, devices)
                standing.told_to_leave += tuple(victim.instance for victim in victims)
                for victim in victims:
                    self._evict(victim, seeker, decision.reason(victim))
            case Wait() as wait:
                standing.again_in_s, standing.claim = wait.again_in_s, wait.claim
                if any(blocker.holding == "promised" for blocker in wait.blockers):
                    # What was promised to it went to one before it: others need not wait for that.
                    self._ledger.release(seeker.instance, had_process=False)
                self._say_waiting(seeker, standing, wait.reason)
            case Refuse(reason=reason) as refusal:
                if refusal.is_held and seeker.asks().load == "at-start" and not seeker.gone:
                    # Whoever holds the memory may leave some day; requests are refused meanwhile.
                    self._say_waiting(seeker, standing, _patiently(reason, seeker), is_refused=True)
                else:
                    standing.answer.set_exception(Refused(Failure(reason)))

    def _spare(self, standing: Standing) -> None:
        for name in standing.told_to_leave:
            self._ledger.spare(name)
        standing.told_to_leave = ()

    def _promise(self, seeker: Seeker, plan: LaunchPlan, devices: Sequence[Device]) -> None:
        used = frozenset(plan.placement.devices)
        self._ledger.promise(
            seeker.instance,
            plan.placement,
            (device.endpoint for device in devices if device.name in used and device.endpoint),
            is_going=seeker.is_going,
            evict=seeker.evict,
            spare=seeker.spare,
        )

    def _evict(self, victim: Resident, seeker: Seeker, reason: Reason) -> None:
        self.evictions += 1
        model = seeker.instance.request.id
        data = {
            "instance": victim.instance,
            "for": model,
            "bytes": victim.total_bytes,
            "idle_s": round(victim.idle_s, 3),
            "leases": victim.leases,
        }
        self._events.record(
            "evicted", reason.message, model=victim.model, replica=victim.replica, reason=reason, data=data
        )
        self._ledger.evict(victim.instance, f"makes room for {model}")

    def _say_waiting(
        self, seeker: Seeker, standing: Standing, reason: Reason, *, is_refused: bool = False
    ) -> None:
        """Show what it waits for; told as an event once, unless its evictions have told it."""
        if standing.verdict is None and not standing.told_to_leave:
            request, replica = seeker.instance.request, seeker.instance.replica
            seeker.instance.states.settle(is_told=True)
            self._events.record("waiting", reason.message, model=request.id, replica=replica, reason=reason)
        known, was_refused = standing.verdict, standing.is_refused
        standing.verdict, standing.is_refused = reason, is_refused
        if known is None or known.message != reason.message:
            self._events.touch()
        if is_refused and not was_refused:
            seeker.changed()

    # Whose turn it is

    def _in_turn(self) -> Iterator[Seeker]:
        """Whoever has memory promised goes first; then by the turns of the pool."""
        asked = [(seeker.asks(), seeker) for seeker in self._seekers]
        place = {applicant: number for number, applicant in enumerate(ordered([a for a, _ in asked]))}

        def rank(pair: tuple[Applicant, Seeker]) -> tuple[bool, int]:
            return not self._ledger.holds(pair[1].instance), place[pair[0]]

        yield from (seeker for _, seeker in sorted(asked, key=rank))

    @property
    def _is_waited_for(self) -> bool:
        """Whether somebody waits who may get something of it soon."""
        return any(
            seeker.standing is not None and not seeker.standing.is_refused for seeker in self.waiting()
        )

    @property
    def _is_asked_for(self) -> bool:
        return any(seeker.asks().waiting for seeker in self._seekers)

    def _next_look_s(self) -> float:
        """Until time alone may change a decision."""
        waits, now = [LOOK_S if self._is_asked_for else RARE_LOOK_S], self._ledger.clock()
        for standing in (seeker.standing for seeker in self._seekers):
            if standing is not None and standing.prepared is None:
                waits.append(max(0.0, PATIENCE_S - (now - standing.since_s)))
            elif standing is not None and standing.again_in_s is not None:
                waits.append(standing.again_in_s)
        return min(waits)


def _patiently(reason: Reason, seeker: Seeker) -> Reason:
    """The remedy for one that comes back only where there is room."""
    if seeker.may_evict():
        return reason
    return replace(
        reason, remedy="It comes back by itself once there is room; a request for it may make some."
    )


def _limits(seeker: Seeker) -> PoolLimits:
    limits = seeker.instance.request.pool
    return limits if seeker.may_evict() else replace(limits, evict="never")


def _starts_alike(one: LaunchPlan, other: LaunchPlan) -> bool:
    """Whether two plans of a launch are the same at its start: a prompt cache fills later, when whoever it
    was measured beside has gone."""

    def at_start(plan: LaunchPlan) -> list[Section]:
        return [section for section in plan.sections if section.name != "prompt-cache"]

    return at_start(one) == at_start(other)
