"""All replicas of one model: who may use them, who waits, when they idle (07 §2.3, §5.8; 08 §2).

The only place that starts, stops or replaces a model. Everything but `acquire` is synchronous; commands
take effect at once and their work goes on in the replicas. Called by runtime.fleet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from framework.runtime import refusals
from framework.runtime.adoption import LeftBehind
from framework.runtime.demotion import Demotion
from framework.runtime.ending import Stop
from framework.runtime.eta import eta_s
from framework.runtime.generations import Generations
from framework.runtime.instance import Instance
from framework.runtime.lease import FailureKind, Lease, RetryVerdict, RevokeCode
from framework.runtime.past import as_asked
from framework.runtime.replica import Replica
from framework.runtime.retries import LOST, SHORT_DELAY_S, after_exit, has_ended, may_be_repeated
from framework.runtime.routing import best_replica
from framework.runtime.shop import Shop
from framework.runtime.speculation_watch import SpeculationWatch
from framework.runtime.speed_store import SpeedStore
from framework.runtime.waiting_room import Wait, Waiter, WaitingRoom
from framework.values.action import StopMode
from framework.values.instance import PUBLIC_ORDER, ModelView, QueueView, State
from framework.values.pool import Applicant
from framework.values.reason import Reason
from framework.values.request import ModelRequest, needs_another_start, same_launch

# 08 §2.10: of the queue time-out, what requests for what is resident may take before another model's.
TURN_SHARE = 0.5


class Supervisor:
    """One declared model. `request` is what the manifest asked last (07 §1.2)."""

    def __init__(self, request: ModelRequest, shop: Shop) -> None:
        self.request = request
        self.removed = False
        self.stopped_by_command = False
        self.demotion = Demotion()
        self.watch = SpeculationWatch(SpeedStore(shop.state_dir), shop.watch_limits)
        self._shop = shop
        self._room = WaitingRoom(shop)
        self._rolling: asyncio.Task[None] | None = None
        self._last_replica: dict[str | None, int] = {}
        self.replicas = [self._replica(index) for index in range(request.live.replicas)]

    # Commands

    def record(self, request: ModelRequest) -> None:
        """Take a new request whose changes need no process to be touched: what runs serves it too."""
        before = self.request
        self._take(request)
        for replica in self.replicas:
            for instance in replica.instances:
                if same_launch(instance.request, before):
                    instance.update_pool(request.pool, request.devices)

    def _take(self, request: ModelRequest) -> None:
        changed = needs_another_start(self.request, request)
        self.request, self.removed = request, False
        if changed:
            self.stopped_by_command = False
            for replica in self.replicas:
                replica.failure.forget()
        for replica in self.replicas:
            for instance in replica.instances:
                instance.update_live(request.live)
            replica.reconsider()
        self._fit_replicas()
        self._wake()

    def start(self, cause: str, *, for_requests: bool = False) -> None:
        """Start every replica that is not up; `for_requests`, as long as any of them waits."""
        self.stopped_by_command = False
        for replica in self.replicas:
            if not (for_requests and replica.fails_again):
                replica.start(cause, for_requests=for_requests)

    def load(self, cause: str) -> None:
        """The command: as `start`, and no wait after a crash is kept."""
        for replica in self.replicas:
            replica.forget()
            replica.hurry(by_command=True)
        self.start(cause)

    def replace(self, request: ModelRequest, cause: str) -> None:
        """Change to a request that needs new processes."""
        self._take(request)
        self._roll(lambda replica: replica.replace(cause))

    def adopt(self, left: LeftBehind) -> Instance:
        """Serve with a process of an earlier manager; to be called before anything else."""
        self.replicas += map(self._replica, range(len(self.replicas), left.record.replica + 1))
        return self.replicas[left.record.replica].adopt(left)

    def stop(self, mode: StopMode, cause: str, *, by_command: bool = False) -> None:
        """Stop every replica. A model stopped by command stays so until `load` or a changed request."""
        if self._rolling is not None:
            self._rolling.cancel()
        self.stopped_by_command = by_command or self.stopped_by_command
        code: RevokeCode = "shutting_down" if self._shop.shutting_down else "model_unloaded"
        stop = Stop(mode, code, cause, keeps_slots=not self.removed, leaves=self._shop.leaves)
        for replica in self.replicas:
            replica.stop(stop)
        self._wake()

    def remove(self) -> None:
        """No longer declared: finish what is served, then go."""
        self.removed = True
        self.stop("drain", "removed from the manifest")

    def reload(self, cause: str) -> None:
        """Replace unconditionally, with failures forgotten (07 §3.11)."""
        self.stopped_by_command = False
        self.demotion.forget()
        for replica in self.replicas:
            replica.forget()
        is_down = all(replica.is_down for replica in self.replicas)
        if is_down or not self._roll(lambda replica: replica.replace(cause, unconditional=True)):
            self.start(cause)

    def replan(self, cause: str) -> bool:
        """Replace what serves where another plan differs (07 §3.11). Whatever starts is planned now anyway;
        whether anything is planned anew."""
        if any(replica.busy for replica in self.replicas) or not self._serving():
            return False
        return self._roll(lambda replica: replica.replan(cause))

    def _roll(self, begin: Callable[[Replica], None]) -> bool:
        """Replace what is up or coming, replicas one after the other (07 §1.1); whether there was any."""
        if self._rolling is not None:
            self._rolling.cancel()
            self._rolling = None
        wanted = self.replicas[: self.request.live.replicas]
        up = [r for r in wanted if r.current is not None and r.current.state is not State.STOPPED]
        if not up:
            return False
        begin(up[0])
        if len(up) > 1:
            self._rolling = asyncio.create_task(self._roll_rest(up[0], up[1:], begin))
        return True

    async def _roll_rest(self, first: Replica, rest: list[Replica], begin: Callable[[Replica], None]) -> None:
        """The others follow only as long as the ones before them came up: a bad change costs one replica."""
        before = first
        for replica in rest:
            await before.settled()
            if self.removed or replica not in self.replicas or not before.serves_wanted:
                return
            begin(replica)
            before = replica

    # Leases

    async def acquire(self, key: str | None) -> Lease:
        """A lease on the least busy ready replica; loads and waits where the rules allow (08 §2.4)."""
        waiter: Waiter | None = None
        try:
            while True:
                lease = self._lease(key)
                if lease is not None:
                    return lease
                wait = self._what_to_wait_for(queued=waiter is not None)
                if waiter is None:
                    waiter = self._queue(wait, key)
                left_s = waiter.left_s(wait)
                if left_s <= 0:
                    progress = next((i.progress() for i in self._current()), None)
                    raise refusals.loading_too_long(self.request.id, progress, self._eta_s())
                await waiter.woken(left_s)
        finally:
            if waiter is not None:
                self._room.leave(waiter)
                if not len(self._room):
                    self._shop.admission.wake()

    async def report_failure(self, lease: Lease, kind: FailureKind, *, opened: bool) -> RetryVerdict:
        """Whether a request that failed at `lease` may be tried once more (07 §9.2)."""
        if not may_be_repeated(kind, opened=opened):
            return LOST
        if self.removed or self.stopped_by_command or lease.revoked.done():
            return RetryVerdict(False, "model_unloaded")
        instance = self._find(lease)
        if instance is not None and instance.serving and not await has_ended(instance, lease.base_url):
            return RetryVerdict(instance.serving)
        if lease.is_suspect:
            return LOST
        replica = self.replicas[lease.replica] if lease.replica < len(self.replicas) else None
        current, serving = replica.current if replica else None, bool(self._serving())
        cause = lease.ended_for or (instance.demoted if instance is not None else None)
        return after_exit(current, serving=serving, cause=cause)

    def _lease(self, key: str | None) -> Lease | None:
        ready = self._serving()
        if not ready or self._shop.shutting_down:
            return None
        last = self._last_replica.get(key)
        spares = self.demotion.drafting(self.request) is not None
        best = best_replica(ready, last, spares_drafting=spares)
        self._last_replica[key] = best.replica
        return best.lease()

    def _what_to_wait_for(self, *, queued: bool) -> Wait:
        """Nothing is ready: what to wait for, started where a request may start it; or raise why not.

        Asked anew each time something changes. Order: (1) the end of everything, (2) a load or replacement
        on its way, (3) a restart that waits, (4) unloaded by command, (5) failed or manual, (6) start.
        """
        model, live = self.request.id, self.request.live
        # (1)
        if self._shop.shutting_down:
            raise refusals.shutting_down()
        if self.removed:
            raise refusals.removed(model)
        # (2)
        backing_off = [r for r in self.replicas if r.current and r.current.state is State.BACKOFF]
        if any(replica.incoming for replica in self.replicas):
            return Wait("swap", live.queue_timeout_s)
        if refusal := self._refused_room():
            raise refusals.no_memory(model, refusal)
        on_its_way = (r.coming or r.makes_room for r in self.replicas if r not in backing_off)
        if any(on_its_way):
            return Wait("load", live.load_timeout_s)
        # (3)
        if backing_off:
            self._hurry(backing_off)
            return Wait("swap", live.queue_timeout_s)
        # (4)
        if self.stopped_by_command:
            raise refusals.not_loaded(model, by_command=True)
        # (5) A start that was refused without a process may be tried again, now and then, for a new request.
        failed = [r for r in self.replicas if r.current and r.current.state is State.FAILED]
        final = queued or live.load == "manual"
        if len(failed) >= live.replicas and (final or all(r.fails_again for r in failed)):
            raise refusals.load_failed(model, self._last_error())
        if live.load == "manual":
            raise refusals.not_loaded(model, by_command=False)
        # (6)
        self.start("a request", for_requests=True)
        return Wait("load", live.load_timeout_s)

    def _refused_room(self) -> Reason | None:
        """Why no replica finds room that goes on looking for it all the same."""
        found = [self._shop.admission.refusal(i.name) for i in self._current() if i.state is State.PLANNING]
        return next((reason for reason in found if reason is not None), None)

    def _hurry(self, backing_off: list[Replica]) -> None:
        """End a wait before the next try, or tell the client to come back."""
        for replica in backing_off:
            replica.failure.is_asked_for = True
            rest_s, reason = (i.rest_s, i.last_error) if (i := replica.current) else (0.0, None)
            if rest_s > SHORT_DELAY_S and not replica.hurry():
                failed_in = replica.failure.reached
                raise refusals.restarting(self.request.id, rest_s, reason, failed_in=failed_in)

    def _queue(self, wait: Wait, key: str | None) -> Waiter:
        limit = self.request.live.max_queue
        if self._room.is_full(limit):
            over_all = self._shop.server.max_waiting
            raise refusals.queue_full(self.request.id, len(self._room), limit, over_all, self._eta_s())
        waiter = self._room.enter(wait, key)
        if len(self._room) == 1:
            self._shop.admission.wake()
        return waiter

    # What is known of a load

    def _last_error(self) -> Reason | None:
        return next((i.last_error for i in self._current() if i.last_error), None)

    def _eta_s(self) -> float | None:
        return eta_s(self.replicas, self._shop.admission)

    # Time

    def tick(self, now_s: float) -> None:
        """Called twice a second: a model that nobody uses stops."""
        live = self.request.live
        serving = [instance for instance in self._current() if instance.serving]
        if live.load != "on-demand" or live.idle_after_s is None or not serving or len(self._room):
            return
        if any(instance.leases for instance in serving) or any(r.busy for r in self.replicas):
            return
        if now_s - max(instance.idle_since_s for instance in serving) >= live.idle_after_s:
            for replica in self.replicas:
                replica.stop(Stop("drain", "model_unloaded", f"idle for {live.idle_after_s:g} s"))

    def drafting_instances(self) -> list[Instance]:
        """Serving instances that guess tokens ahead."""
        return [instance for instance in self._serving() if instance.is_drafting]

    def verdict(self) -> Reason | None:
        """Why drafting is to end, where it is judged and a loss."""
        if self.request.live.yield_watch == "off":
            return None
        found = (instance.meter.drafting for instance in self.drafting_instances())
        return self.watch.verdict([by for by in found if by is not None])

    @property
    def has_waiting(self) -> bool:
        """Whether requests wait for it."""
        return len(self._room) > 0

    # Parts

    def _replica(self, index: int) -> Replica:
        generations = Generations(index, self._shop, self.demotion, self.watch.note)
        return Replica(
            index, self._shop, lambda: self.request, self._asks, generations, self.demotion, self._wake
        )

    def _asks(self, replica: int) -> Applicant:
        """How much a replica that waits for memory is wanted."""
        live = self.request.live
        return Applicant(
            self.request.id,
            replica,
            self.request.pool.name,
            priority=live.priority,
            load=live.load,
            waiting=len(self._room),
            oldest_wait_s=self._room.oldest_s or 0.0,
            turn_after_s=live.queue_timeout_s * TURN_SHARE,
        )

    def _fit_replicas(self) -> None:
        """More replicas start when any runs; fewer drain from the highest number (07 §3.12)."""
        wanted = self.request.live.replicas
        up = any(replica.coming for replica in self.replicas[:wanted])
        while len(self.replicas) < wanted:
            self.replicas.append(self._replica(len(self.replicas)))
        for replica in self.replicas[:wanted]:
            failed = replica.current is not None and replica.current.state is State.FAILED
            if up and not (failed or replica.was_evicted or replica.makes_room):
                replica.start("more replicas")
        for replica in self.replicas[wanted:]:
            if replica.coming:
                replica.stop(Stop("drain", "model_unloaded", "fewer replicas", keeps_slots=False))

    def _wake(self) -> None:
        """Something changed: everybody who waits looks again; superfluous replicas that are gone go."""
        while len(self.replicas) > self.request.live.replicas and _is_gone(self.replicas[-1]):
            self.replicas.pop()
        self._room.wake_all()
        self._shop.ledger.touch()
        self._shop.events.touch()

    def _serving(self) -> list[Instance]:
        """Ready instances that were not told to end, nor ended by themselves, be it a moment ago."""
        current = ((r, r.current) for r in self.replicas)
        return [instance for r, instance in current if instance and instance.reachable and not r.going]

    def _current(self) -> list[Instance]:
        return [replica.current for replica in self.replicas if replica.current is not None]

    def _find(self, lease: Lease) -> Instance | None:
        for replica in self.replicas:
            for instance in replica.instances:
                if instance.name == lease.instance:
                    return instance
        return None

    @property
    def gone(self) -> bool:
        """Removed and nothing left of it."""
        return self.removed and all(_is_gone(replica) for replica in self.replicas)

    def view(self) -> ModelView:
        """An immutable snapshot."""
        instances = tuple(
            as_asked(view, self.request) for replica in self.replicas for view in replica.views()
        )
        states = {instance.state for instance in self._current()} or {State.STOPPED}
        return ModelView(
            request=self.request,
            state=next(state for state in PUBLIC_ORDER if state in states),
            replacing=any(r.incoming is not None or r.outgoing.instances for r in self.replicas),
            queue=QueueView(
                len(self._room),
                self.request.live.max_queue,
                self._room.oldest_s,
                self._eta_s(),
                self._shop.admission.place_of(self.request.id, self.request.pool.name),
            ),
            instances=instances,
            removed=self.removed,
            going=any(replica.going for replica in self.replicas),
            stopped_by_command=self.stopped_by_command,
            spec_yield=self.watch.seen(self.verdict()),
        )


def _is_gone(replica: Replica) -> bool:
    return replica.is_down and replica.is_settled
