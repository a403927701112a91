"""One replica of a model over its instances: start, replace, stop, crash, respawn (07 §2, §4, §5, §9).

Each command raises the epoch, cancels the operation before it and starts its own as a child task, which
first waits until the cancelled one has cleaned up (07 §12). Only this class changes its instances.
Called by runtime.supervisor.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Literal

from framework.models.hub.facts import ResolvedSource
from framework.runtime.ending import Ending, Stop
from framework.runtime.failures import is_hard_fault
from framework.runtime.identity import FilesIdentity, files_identity
from framework.runtime.instance import Instance
from framework.runtime.ladder import Ladder
from framework.runtime.launch import Running, Site
from framework.runtime.logs import LogBuffer
from framework.runtime.restarts import CrashHistory
from framework.runtime.shielded import finish
from framework.runtime.shop import Shop
from framework.runtime.voice import Voice
from framework.telemetry.events import utc_now
from framework.values.instance import ExitInfo, InstanceView, LoadProgress, State
from framework.values.naming import file_name
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest

log = logging.getLogger(__name__)

UP_OR_COMING = frozenset({State.PENDING, State.FETCHING, State.PLANNING, State.STARTING, State.READY})
INTERNAL_ERROR = Reason(
    "internal_error",
    "Paddock itself failed while it started this model; the log has the details.",
    "Report it with the log; `paddock reload` tries again.",
    "error",
)


class Replica:
    """The serving instance and, while it is being replaced, the coming one."""

    def __init__(
        self, index: int, shop: Shop, request: Callable[[], ModelRequest], changed: Callable[[], None]
    ) -> None:
        self.index = index
        self.current: Instance | None = None
        self.incoming: Instance | None = None
        self.epoch = 0
        self.log = LogBuffer()
        self.load_s: float | None = None
        """How long the last successful load took, for estimates."""
        self.failed_files: FilesIdentity | None = None
        """Identity of the files at the last failure that is not retryable (07 §4.7)."""
        self.refused_start = False
        """The last failure was found without a process, so looking again is cheap."""
        self._shop = shop
        self._request = request
        self._changed = changed
        self._generation = 0
        self._history = CrashHistory()
        self._task: asyncio.Task[None] | None = None
        self._aim: Literal["up", "down"] = "down"
        self._hurry = asyncio.Event()
        self._voice = Voice(shop.events, request().id, index, lambda: self.epoch)
        self._ending = Ending(self._voice, self._site, changed)

    # Commands: synchronous, effective at once

    def start(self, cause: str) -> None:
        """Bring up an instance unless one is up or coming."""
        if not self.coming:
            self._begin("up", lambda: self._start(cause, restarts=0))

    def stop(self, stop: Stop) -> None:
        """End whatever runs or is coming."""
        self._begin("down", lambda: self._stop(stop))

    def replace(self, cause: str) -> None:
        """Change to the request as it is now: plan the new, stop the old, start the new (07 §4.4)."""
        self._begin("up", lambda: self._replace(cause))

    def forget(self) -> None:
        """Forget crashes and failures: the user asked for a fresh start (07 §3.11)."""
        self._history.clear()
        self.failed_files = None

    def hurry(self) -> bool:
        """A request waits: end a restart delay early, where that is still allowed (07 §9.6)."""
        if self._history.may_start_early:
            self._hurry.set()
            return True
        return False

    async def settled(self) -> None:
        """Wait until no operation runs."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    @property
    def coming(self) -> bool:
        """Whether an instance is up, or on its way up."""
        if self.busy:
            return self._aim == "up"
        return self.current is not None and self.current.state in UP_OR_COMING

    @property
    def busy(self) -> bool:
        """Whether an operation runs."""
        return self._task is not None and not self._task.done()

    def views(self) -> tuple[InstanceView, ...]:
        """Snapshots of both instances, the serving one first."""
        return tuple(instance.view() for instance in (self.current, self.incoming) if instance)

    # Operations: at most one at a time

    def _begin(self, aim: Literal["up", "down"], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.epoch += 1
        self._aim = aim
        previous, self._task = self._task, asyncio.create_task(self._run(self._task, work))
        if previous is not None:
            previous.cancel()

    async def _run(
        self, previous: asyncio.Task[None] | None, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        try:
            if previous is not None:
                await finish(_ended(previous))
            await work()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("%s.%d: operation failed", self._request().id, self.index)
            if self.current is not None and self.current.state in (
                State.FETCHING,
                State.PLANNING,
                State.STARTING,
            ):
                self._failed(self.current, Failure(INTERNAL_ERROR), refused=False)
        finally:
            asyncio.get_running_loop().call_soon(self._changed)

    async def _start(self, cause: str, *, restarts: int) -> None:
        if self.current is not None and self.current.running is not None:
            await self._stop(Stop("drain", "instance_replaced", cause))
        instance = self.current = self._new(self._request(), restarts)
        self._changed()
        await self._bring_up(instance, cause)

    async def _bring_up(self, instance: Instance, cause: str) -> bool:
        """Plan and launch; True when ready. A refusal or failure is recorded on the instance."""
        try:
            source = await self._fetch(instance, cause)
            async with self._shop.starts.slot():
                await self._plan(instance, cause, source)
                return await self._launch(instance)
        except Refused as refusal:
            self._failed(instance, refusal.failure, refused=True)
            return False
        except asyncio.CancelledError:
            _ended_early(instance)
            raise

    async def _fetch(self, instance: Instance, cause: str) -> ResolvedSource | None:
        """Bring the files of a hub source to this machine; None for a path, which has nothing to wait for.

        Not counted as a start: hours of a download must not keep other models from starting.
        """
        if instance.request.source.path is not None:
            return None
        instance.move(State.FETCHING, cause)
        self._changed()

        def show(progress: LoadProgress) -> None:
            if instance.fetched is None:
                self._voice.fetching(instance.request.source, progress)
            instance.fetched = progress
            self._shop.events.touch()

        source = await self._shop.planner.fetch(instance.request, show)
        if not source.from_cache:
            self._voice.fetched(source)
        return source

    async def _plan(self, instance: Instance, cause: str, source: ResolvedSource | None) -> None:
        if instance.state is State.PENDING:
            instance.move(State.FETCHING, cause)
        instance.move(State.PLANNING, "looking at files and engine")
        self._changed()
        instance.plan = await self._shop.planner.plan(instance.request, self.index, source)
        self._voice.planned(instance.plan)

    async def _launch(self, instance: Instance) -> bool:
        """The ladder; True when the instance is ready. REQUIRES: planned."""
        plan = instance.plan
        if plan is None:
            raise RuntimeError(f"{instance.name} has no plan")
        instance.move(State.STARTING, "planned")
        self._changed()
        site = self._site(instance)
        await asyncio.to_thread(site.run_dir.mkdir, mode=0o700, parents=True, exist_ok=True)

        def spawned(running: Running) -> None:
            instance.running = running
            self._changed()

        ladder = Ladder(
            plan,
            site,
            log_stem=f"llama-{utc_now():%Y%m%dT%H%M%S}",
            mark=f"{self._shop.state_id}:{instance.name}",
            timeout_s=lambda: instance.request.live.load_timeout_s,
            on_spawn=spawned,
            on_attempt=self._voice.attempted,
        )
        try:
            climb = await ladder.climb()
        except BaseException:
            await finish(self._ending.clean(instance))
            raise
        instance.result = climb.result
        if climb.running is not None:
            self._ready(instance, climb.running)
            return True
        instance.running = None
        await self._ending.clean(instance)
        if climb.result.failure is not None:
            self._failed(instance, climb.result.failure, refused=False)
        return False

    def _ready(self, instance: Instance, running: Running) -> None:
        instance.running = running
        instance.idle_since_s = time.monotonic()
        instance.move(State.READY, "healthy")
        self.refused_start = False
        if instance.result is not None:
            self.load_s = instance.result.load_s
            self._voice.ready(instance.name, instance.result, pid=running.child.pid, port=running.port)
        running.child.exited.add_done_callback(lambda code: self._exited(instance, code.result()))
        self._changed()

    async def _replace(self, cause: str) -> None:
        old = self.current
        if old is None or not old.serving:
            await self._start(cause, restarts=0)
            return
        began = time.monotonic()
        new = self.incoming = self._new(self._request(), restarts=0)
        self._changed()
        try:
            source = await self._fetch(new, cause)
            async with self._shop.starts.slot():
                await self._plan(new, cause, source)
            await self._ending.retire(old, Stop("drain", "instance_replaced", cause))
            self.current, self.incoming = new, None
            async with self._shop.starts.slot():
                ready = await self._launch(new)
        except Refused as refusal:
            # 07 §4.2: a refusal costs the serving instance nothing.
            old.last_error = refusal.failure.reason
            self._voice.refused_replacement(refusal.failure)
            return
        except asyncio.CancelledError:
            _ended_early(new)
            raise
        finally:
            self.incoming = None
        if ready:
            self._voice.replaced(old.name, new.name, time.monotonic() - began)
        else:
            await self._roll_back(old.request, new)

    async def _roll_back(self, earlier: ModelRequest, failed: Instance) -> None:
        """07 §4.6: start what served before, once; the wanted request stays recorded."""
        wanted = self._request()
        earlier = replace(earlier, live=wanted.live)
        if failed.state is not State.FAILED or not wanted.live.rollback or earlier == wanted:
            return
        instance = self.current = self._new(earlier, restarts=0)
        if await self._bring_up(instance, "rolling back"):
            instance.last_error = failed.last_error
            self._voice.rolled_back(failed.last_error)

    async def _stop(self, stop: Stop) -> None:
        instance = self.current
        if instance is None or instance.state is State.STOPPED:
            return
        if instance.process_alive:
            await self._ending.retire(instance, stop)
        elif instance.state in (State.DRAINING, State.STOPPING):
            await self._ending.end(instance, stop)
        else:
            await finish(self._ending.bury(instance))
            instance.move(State.STOPPED, stop.cause)
        self._changed()

    # A process that ends by itself

    def _exited(self, instance: Instance, code: int) -> None:
        """Readiness is withdrawn before anything else happens (07 §2.4)."""
        if instance.state is not State.READY:
            return
        policy, ready_s = instance.request.live.restart, instance.seconds_in_state
        delay_s = self._history.crashed(time.monotonic(), ready_s, policy)
        instance.last_exit = ExitInfo(code, hard=is_hard_fault(code), planned=False, seconds_ready=ready_s)
        instance.move(State.FAILED if delay_s is None else State.BACKOFF, "the process ended by itself")
        instance.last_error = self._voice.exited(instance.last_exit)
        if delay_s is None:
            instance.last_error = self._voice.crash_loop(policy, self._history.count, instance.last_error)
            self.failed_files = files_identity(instance.request, instance.plan)
            self._begin("down", lambda: finish(self._ending.bury(instance)))
        else:
            self._begin("up", lambda: self._respawn(instance, delay_s))
        self._changed()

    async def _respawn(self, instance: Instance, delay_s: float) -> None:
        instance.retry_at_s = time.monotonic() + delay_s
        self._hurry.clear()
        await finish(self._ending.bury(instance))
        self._changed()
        if (left_s := instance.retry_at_s - time.monotonic()) > 0:
            hurried = asyncio.ensure_future(self._hurry.wait())
            try:
                await asyncio.wait({hurried}, timeout=left_s)
            finally:
                hurried.cancel()
        restarts = instance.restarts + 1
        self._voice.respawn(restarts, delay_s)
        await self._start("restart", restarts=restarts)

    def _failed(self, instance: Instance, failure: Failure, *, refused: bool) -> None:
        """A start that came to nothing: wait and try again, or give up until something changes."""
        self.refused_start = refused
        self.failed_files = files_identity(instance.request, instance.plan)
        delay_s = None
        if failure.retryable:
            policy = instance.request.live.restart
            delay_s = self._history.crashed(time.monotonic(), 0.0, policy)
            if delay_s is None and refused:
                # 07 §9.5: no process crashed; what may pass, such as a dead network, is waited for.
                delay_s = self._history.delay_s(policy)
        instance.last_error = failure.reason
        instance.move(State.FAILED if delay_s is None else State.BACKOFF, failure.reason.message)
        self._voice.failed(failure, refused=refused)
        if delay_s is not None:
            # Not from inside the running operation: it would wait for itself.
            asyncio.get_running_loop().call_soon(self._begin_respawn, instance, delay_s, self.epoch)
        self._changed()

    def _begin_respawn(self, instance: Instance, delay_s: float, epoch: int) -> None:
        if epoch == self.epoch:
            self._begin("up", lambda: self._respawn(instance, delay_s))

    # Small parts

    def _new(self, request: ModelRequest, restarts: int) -> Instance:
        self._generation += 1
        return Instance(request, self.index, self._generation, events=self._shop.events, restarts=restarts)

    def _site(self, instance: Instance) -> Site:
        shop = self._shop
        return Site(
            self.log,
            shop.state_dir / "logs" / f"{file_name(instance.request.id)}.{self.index}",
            shop.state_dir / "run" / instance.file_name,
            shop.ports,
            shop.client,
        )


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task})


def _ended_early(instance: Instance) -> None:
    """A start that was cancelled: its process is gone already (06 §12.9)."""
    if instance.state in UP_OR_COMING - {State.READY}:
        instance.running = None
        instance.move(State.STOPPED, "cancelled")
