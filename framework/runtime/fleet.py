"""All models of the manager: routing, leases, commands, the apply of actions (07, 08 §2).

The proxy, the API and the dashboard talk to this; reconcile drives it through its own protocol. Snapshots
are values; everything that changes state is synchronous or one of the two awaits, `acquire` and `close`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from framework.hardware.membership import members
from framework.runtime.adoption import LeftBehind, by_model
from framework.runtime.drafter_watch import DrafterWatch
from framework.runtime.earlier_life import give_up
from framework.runtime.engine_metrics import EngineMetrics
from framework.runtime.health_watch import HealthWatch
from framework.runtime.identity import files_identity
from framework.runtime.instance import Instance
from framework.runtime.lease import FailureKind, Glance, Lease, LeaseRefused, RetryVerdict
from framework.runtime.left_work import LeftWork
from framework.runtime.logs import LogBuffer
from framework.runtime.memory_watch import MemoryWatch
from framework.runtime.on_exit import tell_differences
from framework.runtime.pool_views import Seen, pool_view, waiting_view
from framework.runtime.process import KILL_WAIT_S
from framework.runtime.sampler import Sampler
from framework.runtime.second_look import failed_replicas, memory_came_free, retry_if_changed
from framework.runtime.shop import Shop
from framework.runtime.stuck_slots import StuckSlots
from framework.runtime.supervisor import Supervisor
from framework.runtime.yield_care import YieldCare
from framework.telemetry.changes import Changes
from framework.values.action import ModelAction, StopMode
from framework.values.event import Event
from framework.values.instance import ModelView
from framework.values.manifest import Manifest
from framework.values.plan import NOTHING_WITHHELD, Withheld
from framework.values.pool import PoolView, WaitingView
from framework.values.request import PoolLimits

log = logging.getLogger(__name__)

TICK_S = 0.5
# A file that was the same at two looks is whole: no program that copies one pauses for so long.
LOOK_S = 1.0
# A crash of the manager loses at most so much of what was measured.
KEEP_SPEEDS_S = 30.0
# Other programs free memory without telling anybody; trying is cheap, but each try is told.
MEMORY_RETRY_S = 300.0


class Fleet:
    """The models of one manifest. Belongs to one event loop; `run` must be running for idle stops."""

    def __init__(self, shop: Shop, changes: Changes) -> None:
        self.changes = changes
        self._shop = shop
        self._supervisors: dict[str, Supervisor] = {}
        self._order: tuple[str, ...] = ()
        self._names: Mapping[str, str] = {}
        self._pools: Mapping[str, PoolLimits] = {}
        self._staying: frozenset[str] = frozenset()
        self._returns_seen = 0
        self._memory_tried_s = time.monotonic()
        self._sampler = Sampler(self._instances, shop.client, changes)
        self.engine_metrics = EngineMetrics(self._instances, shop.client)
        self._drafters = DrafterWatch(self._instances, shop)
        self._health = HealthWatch(self._served, shop)
        self.stuck = StuckSlots()
        self._left_work = LeftWork()
        self._memory = MemoryWatch(self._all_instances, shop)
        self._care = YieldCare(shop.events)

    # Reading

    def views(self) -> tuple[ModelView, ...]:
        """All models in declared order, then those that only finish what they serve."""
        rest = [model_id for model_id in self._supervisors if model_id not in self._order]
        return tuple(self._supervisors[model_id].view() for model_id in (*self._order, *rest))

    def pools(self) -> tuple[PoolView, ...]:
        """All pools with their devices as last listed, who holds their memory, and who waits for it."""
        residents, seen = self._shop.ledger.residents(), self._seen()
        listed = self._memory.as_now(self._shop.listed())
        return tuple(
            pool_view(
                limits,
                members(listed, limits),
                residents,
                self._waiting(name),
                seen,
                self._shop.admission.evictions(name),
            )
            for name, limits in self._pools.items()
        )

    def view(self, model_id: str) -> ModelView | None:
        """One model, or None when there is none of this id."""
        supervisor = self._supervisors.get(model_id)
        return supervisor.view() if supervisor else None

    def withheld(self, model_id: str) -> Withheld:
        """What a start of a model goes without for now, because its processes did worse with it."""
        supervisor = self._supervisors.get(model_id)
        if supervisor is None:
            return NOTHING_WITHHELD
        return supervisor.demotion.withheld(supervisor.request)

    def resolve(self, name: str) -> str | None:
        """The id of the declared model with this name or alias, compared exactly."""
        return self._names.get(name)

    def log(self, model_id: str, replica: int = 0) -> LogBuffer | None:
        """The output of a replica, over its instances."""
        supervisor = self._supervisors.get(model_id)
        if supervisor is None or not 0 <= replica < len(supervisor.replicas):
            return None
        return supervisor.replicas[replica].log

    # Leases

    async def acquire(self, model_id: str, *, key: str | None = None) -> Lease:
        """A lease on a ready instance; loads and waits as 08 §2.4 says. Raises LeaseRefused."""
        supervisor = self._supervisors.get(model_id)
        if supervisor is None:
            raise LeaseRefused("model_not_found", f"There is no model {model_id!r}.")
        return await supervisor.acquire(key)

    async def glance(self, model_id: str, path: str, *, timeout_s: float) -> Glance | None:
        """What a ready instance answers to a GET; None while there is none. Wakes and holds nothing."""
        for instance in self._instances():
            running, request = instance.running, instance.request
            if request.id == model_id and instance.serving and running is not None:
                looked = await self._shop.client.look(running.port, running.key, path, timeout_s)
                return Glance(request, *looked)
        return None

    async def report_failure(self, lease: Lease, kind: FailureKind, *, opened: bool) -> RetryVerdict:
        """What to do after an upstream call failed (07 §9.2)."""
        supervisor = self._supervisors.get(lease.model)
        if supervisor is None:
            return RetryVerdict(False, "model_unloaded")
        return await supervisor.report_failure(lease, kind, opened=opened)

    # Commands

    def load(self, model_id: str, *, by: str) -> Event:
        """Start the model if it is not up. Raises KeyError for an unknown id."""
        supervisor = self._declared(model_id)
        event = self._command("load", model_id, by)
        supervisor.load(f"load by {by}")
        return event

    def unload(self, model_id: str, mode: StopMode = "drain", *, by: str) -> Event:
        """Stop the model until `load` or a changed request. Raises KeyError for an unknown id."""
        supervisor = self._declared(model_id)
        event = self._command(f"unload ({mode})", model_id, by)
        supervisor.stop(mode, f"unload by {by}", by_command=True)
        return event

    def reload(self, model_id: str, *, by: str) -> Event:
        """Replace the model's instances, with failures forgotten. Raises KeyError for an unknown id."""
        supervisor = self._declared(model_id)
        event = self._command("reload", model_id, by)
        self._drafters.look_again(model_id)
        supervisor.reload(f"reload by {by}")
        return event

    def replan(self, model_id: str, *, by: str) -> Event:
        """Plan the model anew, and replace what another plan changes. Raises KeyError for an unknown id."""
        supervisor = self._declared(model_id)
        event = self._command("replan", model_id, by)
        if not supervisor.replan(f"replan by {by}"):
            text = "nothing is planned anew: it does not serve, or a change of it is on its way"
            data = {"changes": [], "replaces": False}
            self._shop.events.record("replanned", text, model=model_id, data=data)
        return event

    def adopt(self, found: Iterable[LeftBehind]) -> None:
        """Go on with what an earlier manager left behind, as if it had been started here for what it was
        started for. To be called before the first apply, which compares that with the manifest (07 §8.7).
        What cannot be taken over costs no other its process, and is ended."""
        for model_id, of_model in by_model(found).items():
            supervisor = Supervisor(of_model[0].request, self._shop)
            for left in of_model:
                try:
                    self._left_work.begin(supervisor.adopt(left))
                except Exception as error:
                    log.exception("taking over %s failed", left.record.instance)
                    give_up(self._shop, left, error)
                else:
                    self._supervisors[model_id] = supervisor

    # Applies (reconcile.apply.Effects)

    def apply(self, manifest: Manifest, actions: Sequence[ModelAction]) -> None:
        """Carry out actions in their order and publish the new names, in one turn of the loop."""
        self._shop.server = manifest.server
        self._pools = manifest.pools
        self._shop.starts.set_limit(manifest.server.start_concurrency)
        self._publish(manifest)
        for action in actions:
            self._act(manifest, action)
        self._order = tuple(manifest.models)
        # Limits of a pool, priorities and pins may let somebody in who waits.
        self._shop.ledger.touch()
        self.changes.mark()

    def _publish(self, manifest: Manifest) -> None:
        names = {alias: model_id for model_id, r in manifest.models.items() for alias in r.live.aliases}
        self._names = names | {model_id: model_id for model_id in manifest.models}

    def _act(self, manifest: Manifest, action: ModelAction) -> None:
        request = manifest.models.get(action.model)
        supervisor = self._supervisors.get(action.model)
        if request is None:
            if supervisor is not None:
                supervisor.remove()
            return
        if supervisor is None:
            supervisor = self._supervisors[action.model] = Supervisor(request, self._shop)
        cause = _cause(action)
        if action.kind == "replace":
            supervisor.replace(request, cause)
        else:
            supervisor.record(request)
        if action.kind == "start":
            supervisor.start(cause)

    # Life

    async def run(self) -> None:
        """Idle stops, samples, health, second looks at files and for drafters, removals; until cancelled."""
        parts = (
            self._sampler.run(),
            self._drafters.run(),
            self._health.run(),
            self._memory.run(),
            self._look_at_failed(),
            self._keep_speeds(),
        )
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            while True:
                await asyncio.sleep(TICK_S)
                self._tick()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def close(self, timeout_s: float) -> None:
        """Stop everything at once, in parallel; what is left after `timeout_s` is killed (07 §5.5).

        With `on_exit = "keep"` processes that serve and can be left to the next manager go on.
        """
        self._begin_end()
        supervisors = list(self._supervisors.values())
        for supervisor in supervisors:
            supervisor.stop("now", "the manager ends")
        await self._settled(supervisors, timeout_s)
        self._kill_rest()
        await self._settled(supervisors, KILL_WAIT_S)
        for supervisor in supervisors:
            supervisor.watch.write(supervisor.watch.unsaved())
            for replica in supervisor.replicas:
                replica.log.end()

    def abandon(self) -> None:
        """This process ends now, whatever it was doing. What is tied to it goes by the kernel's doing; what
        is not, and is not left to the next manager either, gets its SIGKILL here."""
        self._begin_end()
        self._kill_rest()

    def _begin_end(self) -> None:
        """Nothing starts any more, and it is settled who stays."""
        if not self._shop.shutting_down:
            self._shop.shutting_down = True
            stay = (i.name for i in self._instances() if self._shop.leaves and i.may_stay)
            self._staying = frozenset(stay)

    def _kill_rest(self) -> None:
        for instance in self._all_instances():
            if instance.running is not None and instance.name not in self._staying:
                instance.running.child.signal_kill()

    async def _settled(self, supervisors: Iterable[Supervisor], timeout_s: float) -> None:
        waits = [
            asyncio.ensure_future(r.settled()) for s in supervisors for r in s.replicas if not r.is_settled
        ]
        if waits:
            _, pending = await asyncio.wait(waits, timeout=timeout_s)
            for wait in pending:
                wait.cancel()

    def _tick(self) -> None:
        now = time.monotonic()
        self._shop.ledger.prune()
        is_due = now - self._memory_tried_s > MEMORY_RETRY_S
        if is_due or self._shop.ledger.returns != self._returns_seen:
            self._returns_seen = self._shop.ledger.returns
            self._memory_tried_s = now if is_due else self._memory_tried_s
            for supervisor in by_priority(self._supervisors.values()):
                memory_came_free(supervisor, failed=is_due)
        self._left_work.look()
        tell_differences(self._instances(), self._shop.server.on_exit, self._shop.events)
        self.stuck.keep(frozenset(instance.name for instance in self._instances()))
        for instance in self._instances():
            if (reason := self.stuck.look(instance)) is not None:
                instance.end_for(reason)
        for model_id, supervisor in tuple(self._supervisors.items()):
            try:
                supervisor.tick(now)
                self._care.look(supervisor, now)
            except Exception:
                log.exception("tick of %s failed", model_id)
            if supervisor.gone:
                supervisor.watch.write(supervisor.watch.unsaved())
                del self._supervisors[model_id]
                self.changes.mark()

    async def _look_at_failed(self) -> None:
        """Models that should be up and failed: have their files changed? Looked at in a thread."""
        while True:
            await asyncio.sleep(LOOK_S)
            for supervisor in tuple(self._supervisors.values()):
                for replica in failed_replicas(supervisor):
                    plan = replica.current.plan if replica.current else None
                    now = await asyncio.to_thread(files_identity, supervisor.request, plan)
                    if replica in failed_replicas(supervisor):
                        retry_if_changed(replica, now)

    async def _keep_speeds(self) -> None:
        """Write down what was measured, in a thread."""
        while True:
            await asyncio.sleep(KEEP_SPEEDS_S)
            for supervisor in tuple(self._supervisors.values()):
                if found := supervisor.watch.unsaved():
                    await asyncio.to_thread(supervisor.watch.write, found)

    def _instances(self) -> Iterator[Instance]:
        for instance, _ in self._served():
            yield instance

    def _all_instances(self) -> Iterator[Instance]:
        """Those that come and those that leave, too."""
        for supervisor in self._supervisors.values():
            for replica in supervisor.replicas:
                yield from replica.instances

    def _served(self) -> Iterator[tuple[Instance, LogBuffer]]:
        """The instance of each replica, with what it prints."""
        for supervisor in self._supervisors.values():
            for replica in supervisor.replicas:
                if replica.current is not None:
                    yield replica.current, replica.current.log

    def _waiting(self, pool: str) -> list[WaitingView]:
        admission, now = self._shop.admission, self._shop.ledger.clock()
        return [
            waiting_view(
                seeker,
                position,
                requests=seeker.asks().waiting,
                eta_s=admission.eta_s(seeker.instance.name),
                now_s=now,
            )
            for position, seeker in enumerate(admission.waiting(pool), 1)
        ]

    def _seen(self) -> Seen:
        instances = [instance for instance in self._all_instances() if instance.running is not None]
        return Seen(
            frozenset(i.running.child.pid for i in instances if i.running is not None),
            {i.name: i.result.allocated_bytes for i in instances if i.result and i.result.allocated_bytes},
            {name: held for i in instances if (held := self._memory.held_bytes.get(name := i.name))},
        )

    def _declared(self, model_id: str) -> Supervisor:
        supervisor = self._supervisors[model_id]
        if supervisor.removed:
            raise KeyError(model_id)
        return supervisor

    def _command(self, command: str, model_id: str, by: str) -> Event:
        data = {"command": command, "by": by}
        return self._shop.events.record("command", f"{command} by {by}", model=model_id, data=data)


def by_priority(supervisors: Iterable[Supervisor]) -> list[Supervisor]:
    """The higher first, else as declared."""
    return sorted(supervisors, key=lambda supervisor: -supervisor.request.live.priority)


def _cause(action: ModelAction) -> str:
    names = ", ".join(change.field for change in action.changes if change.effect == "restart")
    return f"manifest: {names}" if names else "manifest"
