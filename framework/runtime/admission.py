"""Whether, where and when a start may go ahead: the queue for the memory of each pool (04 §16, 08 §2.10).

Each pool has one dispatcher, which looks at those that wait in the order of their turns whenever something
changed, lets `planning.pools.decision` decide, and does what it says. Between decision and promise nothing is
awaited, so no two starts count the same bytes. Called by runtime.starting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from framework.hardware.devices import DeviceList
from framework.planning.pools.decision import Decision, Evict, Refuse, Start, Wait, decide
from framework.planning.pools.turns import ordered
from framework.runtime.instance import Instance
from framework.runtime.ledger import Ledger
from framework.runtime.memory_return import MemoryReturn
from framework.runtime.planner import Prepared
from framework.telemetry.events import EventLog
from framework.values.device import Device
from framework.values.plan import LaunchPlan
from framework.values.pool import Applicant, Freedom, Resident
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import PoolLimits

log = logging.getLogger(__name__)

# What other programs do to memory is seen by looking again.
LOOK_S = 2.0
# While no request waits, that may take longer.
RARE_LOOK_S = 30.0
DOES_NOT_FIT = "does_not_fit"
# Evidence of a refusal that the end of others would lift.
HELD = "held_by"
# A start of higher order whose files are still being read goes first, unless that takes long.
PATIENCE_S = 5.0
LEAST_S = 0.01
# A ledger that changes while a thread decides makes that worthless; in the end the loop itself decides.
TRIES = 2


class Planning(Protocol):
    """What admission needs of the planner."""

    async def look(self, prepared: Prepared, *, fresh: bool = False) -> DeviceList:
        """The devices of a launch as they are listed now, or were a moment ago."""
        ...

    async def until_quiet(self, endpoints: Collection[str]) -> None:
        """Wait until nobody asks these servers for their devices any more."""
        ...

    def place(
        self,
        prepared: Prepared,
        devices: Sequence[Device],
        residents: Sequence[Resident] = (),
        *,
        freedom: Freedom,
        ceilings: Mapping[str, int] | None = None,
    ) -> LaunchPlan:
        """The plan beside `residents`, or values.reason.Refused. Called in threads."""
        ...


class Unwanted(Exception):
    """Nobody waits for the start any more."""


@dataclass(eq=False)
class Seeker:
    """One start that wants memory. The callables are asked anew for each decision."""

    instance: Instance
    asks: Callable[[], Applicant]
    is_wanted: Callable[[], bool]
    is_going: Callable[[Instance], bool]
    evict: Callable[[str], None]
    gone: frozenset[str] = frozenset()
    """Instances that end before it starts."""
    ceilings: Mapping[str, int] = field(default_factory=dict)
    """The most that it may need of a device, by name."""
    prepared: Prepared | None = None
    since_s: float = 0.0
    verdict: Reason | None = None
    """What it waits for."""
    again_in_s: float | None = None
    """When time alone may change that."""
    is_making_room: bool = False
    """Others were told to leave for it."""


@dataclass
class _Answer:
    seeker: Seeker
    future: asyncio.Future[LaunchPlan]


@dataclass
class _Pool:
    answers: list[_Answer] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    dispatcher: asyncio.Task[None] | None = None
    evictions: int = 0


class Admission:
    """The queues of all pools. Belongs to one event loop."""

    def __init__(self, ledger: Ledger, planner: Callable[[], Planning], events: EventLog) -> None:
        self._ledger = ledger
        self._planner = planner
        self._events = events
        self._pools: dict[str, _Pool] = {}
        self._returning = MemoryReturn(ledger, events)
        ledger.watch(self.wake)

    async def admit(self, seeker: Seeker, prepare: Callable[[], Awaitable[Prepared]]) -> LaunchPlan:
        """Find out what it needs, wait for memory, and set it aside. Raises Refused and Unwanted.

        The promise stays in the ledger until the instance is ready, or is given back by whoever ends it; when
        this is cancelled or raises, nothing stays.
        """
        pool = self._pools.setdefault(seeker.instance.request.pool.name, _Pool())
        seeker.since_s = self._ledger.clock()
        answer = _Answer(seeker, asyncio.get_running_loop().create_future())
        pool.answers.append(answer)
        try:
            seeker.prepared = await prepare()
            self._run(pool)
            plan = await answer.future
            await self._planner().until_quiet(self._ledger.endpoints_of(seeker.instance))
            return plan
        except BaseException:
            self._ledger.release(seeker.instance, had_process=False)
            raise
        finally:
            pool.answers.remove(answer)
            pool.wake.set()

    def waiting(self, pool: str) -> tuple[Seeker, ...]:
        """Those that wait for memory in a pool, in the order of their turns."""
        answers = self._pools[pool].answers if pool in self._pools else ()
        return tuple(seeker for seeker in _in_turn(answers) if seeker.verdict is not None)

    def place_of(self, model: str, pool: str) -> int | None:
        """The place of a model among those that wait in its pool, from 1; None while it does not wait."""
        models = [seeker.instance.request.id for seeker in self.waiting(pool)]
        return models.index(model) + 1 if model in models else None

    def eta_s(self, instance: str) -> float | None:
        """Until an instance that waits can serve: the loads before it and its own, as they were measured."""
        for pool in self._pools:
            before: list[float | None] = []
            for seeker in self.waiting(pool):
                before.append(seeker.instance.expected_load_s)
                if seeker.instance.name == instance:
                    known = [seconds for seconds in before if seconds is not None]
                    return sum(known) if len(known) == len(before) else None
        return None

    def evictions(self, pool: str) -> int:
        """Instances of a pool that made room for others so far."""
        return self._pools[pool].evictions if pool in self._pools else 0

    def wake(self) -> None:
        """Something changed: leases, holders, requests that wait."""
        for pool in self._pools.values():
            pool.wake.set()

    # The dispatcher of a pool

    def _run(self, pool: _Pool) -> None:
        pool.wake.set()
        if pool.dispatcher is None or pool.dispatcher.done():
            pool.dispatcher = asyncio.create_task(self._dispatch(pool))

    async def _dispatch(self, pool: _Pool) -> None:
        while pool.answers:
            pool.wake.clear()
            try:
                await self._consider_all(pool)
            except Exception:
                log.exception("deciding about memory failed")
            try:
                await asyncio.wait_for(pool.wake.wait(), self._next_look_s(pool))
            except TimeoutError:
                continue

    async def _consider_all(self, pool: _Pool) -> None:
        now = self._ledger.clock()
        before: list[Applicant] = []
        for seeker in _in_turn(pool.answers):
            answer = next((a for a in pool.answers if a.seeker is seeker and not a.future.done()), None)
            if answer is None:
                continue
            if seeker.prepared is None:
                if now - seeker.since_s < PATIENCE_S:
                    return
                continue
            if not seeker.is_wanted():
                answer.future.set_exception(Unwanted())
                continue
            await self._consider(pool, answer, seeker.prepared, before)
            if not answer.future.done() and not seeker.is_making_room:
                before.append(seeker.asks())

    async def _consider(
        self, pool: _Pool, answer: _Answer, prepared: Prepared, before: Sequence[Applicant]
    ) -> None:
        """Decide about one start and do it. A fault of planning fails this start, not the others."""
        seeker = answer.seeker
        devices = await self._returning.devices(lambda *, fresh: self._planner().look(prepared, fresh=fresh))
        try:
            decision = await self._decided(lambda: self._question(seeker, prepared, devices, before))
        except Exception as fault:
            if not isinstance(fault, Refused):
                log.exception("planning %s failed", seeker.instance.name)
            _fail(answer, fault)
            return
        if not answer.future.done():
            self._act(pool, answer, decision, devices)

    async def _decided(self, question: Callable[[], _Question]) -> Decision[LaunchPlan]:
        """The decision about things as they are when this returns."""
        for _ in range(TRIES):
            version = self._ledger.version
            decision = await asyncio.to_thread(question())
            if self._ledger.version == version:
                return decision
        return question()()

    def _question(
        self, seeker: Seeker, prepared: Prepared, devices: Sequence[Device], before: Sequence[Applicant]
    ) -> _Question:
        residents = self._ledger.residents(besides=(seeker.instance.name,))
        limits = seeker.instance.request.pool
        return _Question(
            seeker.asks(),
            tuple(r for r in residents if r.instance not in seeker.gone),
            tuple(r for r in residents if r.instance in seeker.gone),
            tuple(before),
            prepared,
            tuple(devices),
            seeker.ceilings,
            self._planner(),
            limits,
        )

    def _act(
        self, pool: _Pool, answer: _Answer, decision: Decision[LaunchPlan], devices: Sequence[Device]
    ) -> None:
        seeker = answer.seeker
        seeker.again_in_s = None
        match decision:
            case Start(plan=plan):
                self._promise(seeker, plan, devices)
                answer.future.set_result(plan)
            case Evict(victims=victims, plan=plan):
                # Promised before they end, or somebody else takes what they give back.
                self._promise(seeker, plan, devices)
                self._returning.expect(devices, victims)
                seeker.is_making_room = True
                for victim in victims:
                    self._evict(pool, victim, seeker, decision.reason(victim))
            case Wait() as wait:
                seeker.again_in_s = wait.again_in_s
                self._say_waiting(seeker, wait.reason)
            case Refuse(reason) if HELD in reason.evidence and not seeker.asks().waiting:
                # Nobody is kept waiting by it, and whoever holds the memory may leave some day.
                self._say_waiting(seeker, reason)
            case Refuse(reason):
                _fail(answer, Refused(Failure(reason)))

    def _promise(self, seeker: Seeker, plan: LaunchPlan, devices: Sequence[Device]) -> None:
        used = frozenset(plan.placement.devices)
        self._ledger.promise(
            seeker.instance,
            plan.placement,
            (device.endpoint for device in devices if device.name in used and device.endpoint),
            is_going=seeker.is_going,
            evict=seeker.evict,
        )

    def _evict(self, pool: _Pool, victim: Resident, seeker: Seeker, reason: Reason) -> None:
        pool.evictions += 1
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

    def _say_waiting(self, seeker: Seeker, reason: Reason) -> None:
        """Show what it waits for; told as an event once, unless its evictions have told it."""
        if seeker.verdict is None and not seeker.is_making_room:
            request, replica = seeker.instance.request, seeker.instance.replica
            self._events.record("waiting", reason.message, model=request.id, replica=replica, reason=reason)
        seeker.verdict = reason
        self._events.touch()

    def _next_look_s(self, pool: _Pool) -> float:
        """Until time alone may change a decision: a turn that is due, a resident that was just used."""
        asked_for = any(answer.seeker.asks().waiting for answer in pool.answers)
        waits = [
            LOOK_S if asked_for else RARE_LOOK_S,
            *(w for a in pool.answers if (w := a.seeker.again_in_s) is not None),
        ]
        return max(LEAST_S, min(waits))


def _fail(answer: _Answer, error: Exception) -> None:
    if not answer.future.done():
        answer.future.set_exception(error)


def _in_turn(answers: Sequence[_Answer]) -> Iterator[Seeker]:
    """Whoever has sent others away goes first; then by the turns of their pool."""
    seekers = [answer.seeker for answer in answers]
    asked = [(seeker.asks(), seeker) for seeker in seekers]
    place = {applicant: number for number, applicant in enumerate(ordered([a for a, _ in asked]))}
    yield from (s for _, s in sorted(asked, key=lambda pair: (not pair[1].is_making_room, place[pair[0]])))


@dataclass
class _Question:
    """What `decide` is asked, with every plan that it tried. Called in a thread: all of it are values."""

    asker: Applicant
    residents: tuple[Resident, ...]
    leaving: tuple[Resident, ...]
    """Those that end before it starts, whatever is decided."""
    before: tuple[Applicant, ...]
    prepared: Prepared
    devices: tuple[Device, ...]
    ceilings: Mapping[str, int]
    planner: Planning
    limits: PoolLimits

    def __call__(self) -> Decision[LaunchPlan]:
        return decide(
            self.asker,
            self.residents,
            self.before,
            self._place,
            evict=self.limits.evict,
            offload=self.limits.offload,
        )

    def _place(self, gone: frozenset[str], freedom: Freedom) -> LaunchPlan | Reason:
        staying = tuple(resident for resident in self.residents if resident.instance not in gone)
        try:
            return self.planner.place(
                self.prepared, self._without(gone), staying, freedom=freedom, ceilings=self.ceilings
            )
        except Refused as refusal:
            if refusal.failure.reason.code != DOES_NOT_FIT:
                raise
            return refusal.failure.reason

    def _without(self, gone: frozenset[str]) -> list[Device]:
        """The devices as they will be listed when those are gone. What a start under way will hold is not
        listed as taken yet."""
        freed: Counter[str] = Counter()
        for resident in (*self.leaving, *(r for r in self.residents if r.instance in gone)):
            if resident.holding != "promised":
                freed.update(resident.bytes)
        return [
            replace(device, free_bytes=min(device.total_bytes, device.free_bytes + freed[device.name]))
            for device in self.devices
        ]
