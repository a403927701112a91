"""Whether, where and when a start may go ahead: the queues of all pools (04 §16, 07 §12.4).

Called by runtime.starting, which gets a plan whose memory is set aside; and by readers, who see who waits for
what. How the queue of a pool is worked off is in runtime.pool_queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from framework.planning.pools.eviction import LINGER_S
from framework.runtime.instance import Instance
from framework.runtime.ledger import Ledger
from framework.runtime.memory_return import MemoryReturn
from framework.runtime.planning import Planning
from framework.runtime.pool_queue import PoolQueue
from framework.runtime.seeker import Moved, Seeker
from framework.telemetry.events import EventLog
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason

# Just after the pause that makes a resident idle.
RESTED_S = LINGER_S + 0.01


class Admission:
    """The queues of all pools. Belongs to one event loop."""

    def __init__(self, ledger: Ledger, planner: Callable[[], Planning], events: EventLog) -> None:
        self._ledger = ledger
        self._planner = planner
        self._events = events
        self._queues: dict[str, PoolQueue] = {}
        self._returning = MemoryReturn(ledger, events)
        ledger.watch(self.wake)

    async def admit(self, seeker: Seeker) -> LaunchPlan:
        """Find out what a start needs, wait for memory, and set it aside. Raises Refused and Unwanted.

        The promise stays in the ledger until the instance is ready, or is given back by whoever ends it; when
        this is cancelled or raises, nothing stays.
        """
        while True:
            try:
                plan = await self._queue(seeker.instance.request.pool.name).answer(seeker)
                await self._planner().until_quiet(self._ledger.endpoints_of(seeker.instance))
            except Moved:
                continue
            except BaseException:
                self._ledger.release(seeker.instance, had_process=False)
                raise
            return plan

    async def fits_beside(self, seeker: Seeker, plan: LaunchPlan) -> bool:
        """Whether a start that was admitted could go ahead as planned without anybody leaving for it."""
        return await self._queue(seeker.instance.request.pool.name).fits_beside(seeker, plan)

    def waiting(self, pool: str) -> tuple[Seeker, ...]:
        """Those that wait for memory in a pool, in the order of their turns."""
        return self._queues[pool].waiting() if pool in self._queues else ()

    def refusal(self, instance: str) -> Reason | None:
        """Why an instance finds no room although it goes on looking; None where that is not so."""
        found = (queue.standing(instance) for queue in self._queues.values())
        return next((one.verdict for one in found if one is not None and one.is_refused), None)

    def place_of(self, model: str, pool: str) -> int | None:
        """The place of a model among those that wait in its pool, from 1; None while it does not wait."""
        if pool not in self._queues or not self._queues[pool].has(model):
            return None
        models = [seeker.instance.request.id for seeker in self.waiting(pool)]
        return models.index(model) + 1 if model in models else None

    def eta_s(self, instance: str) -> float | None:
        """Until an instance that waits can serve: the loads before it and its own, as they were measured."""
        for queue in self._queues.values():
            before: list[float | None] = []
            for seeker in queue.waiting():
                before.append(seeker.instance.expected_load_s)
                if seeker.instance.name == instance:
                    if seeker.standing is not None and seeker.standing.is_refused:
                        return None
                    known = [seconds for seconds in before if seconds is not None]
                    return sum(known) if len(known) == len(before) else None
        return None

    def evictions(self, pool: str) -> int:
        """Instances of a pool that made room for others so far."""
        return self._queues[pool].evictions if pool in self._queues else 0

    def rests(self, instance: Instance) -> None:
        """An instance serves nobody: it makes room once it has not for a moment."""
        asyncio.get_running_loop().call_later(RESTED_S, self._rested, instance)

    def wake(self) -> None:
        """Something changed: holders, limits, requests that wait."""
        for queue in self._queues.values():
            queue.wake()

    def _queue(self, pool: str) -> PoolQueue:
        queue, planner = self._queues.get(pool), self._planner()
        if queue is None:
            queue = PoolQueue(pool, self._ledger, planner, self._events, self._returning)
            self._queues[pool] = queue
        queue.planner = planner
        return queue

    def _rested(self, instance: Instance) -> None:
        if not instance.leases:
            self.wake()
