"""One replica of a model over its instances: start, replace, stop, crash, respawn (07 §2, §4, §5, §9).

Commands take effect at once; their work is done by one operation at a time (runtime.operations). Only this
class changes its instances, and runtime.replacement for it. Called by runtime.supervisor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from framework.runtime.adoption import LeftBehind, take_over
from framework.runtime.crash_cause import CrashWatch, restart_policy
from framework.runtime.demotion import Demotion
from framework.runtime.ending import Ending, Stop
from framework.runtime.failure_memory import FailureMemory
from framework.runtime.failures import is_hard_fault
from framework.runtime.generations import Generations
from framework.runtime.identity import files_identity
from framework.runtime.instance import Instance
from framework.runtime.launch import Running, Site
from framework.runtime.operations import Aim, Operations, Work
from framework.runtime.outgoing import Outgoing
from framework.runtime.pause import Pause
from framework.runtime.replacement import Replacement
from framework.runtime.restarts import CrashHistory
from framework.runtime.seeker import Seeker, Unwanted
from framework.runtime.shielded import finish
from framework.runtime.shop import Shop
from framework.runtime.starting import INTERNAL_ERROR, LOADING, Starting
from framework.runtime.voice import Voice
from framework.values.instance import ExitInfo, InstanceView, State
from framework.values.pool import Applicant
from framework.values.reason import Failure
from framework.values.request import ModelRequest, same_launch

UP_OR_COMING = LOADING | {State.READY}


class Replica:
    """The serving instance and, while it is being replaced, the coming one."""

    def __init__(
        self,
        index: int,
        shop: Shop,
        request: Callable[[], ModelRequest],
        asks: Callable[[int], Applicant],
        generations: Generations,
        demotion: Demotion,
        changed: Callable[[], None],
    ) -> None:
        self.index = index
        self.current: Instance | None = None
        self.incoming: Instance | None = None
        self.log = generations.log
        """The output of its processes, as it comes."""
        self.load_s: float | None = None
        """How long the last successful load took, for estimates."""
        self.failure = FailureMemory()
        self._is_evicted = False
        self._only_for_requests = False
        self._may_evict = True
        self._asks = asks
        self._shop = shop
        self._request = request
        self._changed = changed
        self._demotion = demotion
        self._generations = generations
        self._history = CrashHistory()
        self._watch = CrashWatch()
        self._operations = Operations(lambda: f"{request().id}.{index}", changed)
        self._pause = Pause()
        self._site: Callable[[Instance], Site] = shop.site
        generations.epoch = lambda: self._operations.epoch
        self._voice = Voice(shop.events, request().id, index, generations)
        self._ending = Ending(self._voice, self._site, shop, lambda: asks(index), changed)
        self.outgoing = Outgoing(self._ending, changed)
        self._starting = Starting(index, shop, self._voice, self._site, self._seeker, changed)
        self._replacement = Replacement(
            self, request, self._starting, self._ending, self._voice, shop, changed
        )

    # Commands: synchronous, effective at once

    def start(self, cause: str, *, for_requests: bool = False, may_evict: bool = True) -> None:
        """Bring up an instance unless one is up or coming. `for_requests`: as long as any of them waits.
        Without `may_evict` others make room only once requests wait."""
        if not self.coming:
            self._begin("up", lambda: self._start(cause))
            self._only_for_requests, self._may_evict = for_requests, may_evict
        elif not for_requests:
            self._only_for_requests = False

    def adopt(self, left: LeftBehind) -> Instance:
        """Serve with a process of an earlier manager (07 §8.7). REQUIRES: there was no instance yet."""
        instance = self._generations.known(left)
        running = take_over(left, instance, self._site(instance), self._seeker(instance), self._shop.ledger)
        self.current = instance
        self._serve(instance, running)
        self._voice.adopted(instance.name, left)
        return instance

    def stop(self, stop: Stop) -> None:
        """End whatever runs or is coming."""
        self.outgoing.hurry(stop)
        self._begin("down", lambda: self._stop(stop))

    def evict(self, cause: str) -> None:
        """Leave for another model, after the answers that are being given, however long they take."""
        self.stop(Stop("drain", "model_unloaded", cause, is_patient=True))
        self._is_evicted = True

    def spare(self) -> None:
        """Nobody wants its place any more: serve on, if it is not too late."""
        if self.makes_room:
            self._begin("up", lambda: self._start("its place is not needed any more"))

    def replace(self, cause: str, *, unconditional: bool = False) -> None:
        """Plan the request of now, stop the old, start the new (07 §4.4); not what serves it already, unless
        `unconditional`."""
        self._begin("up", lambda: self._replace(cause, unconditional=unconditional))

    def replan(self, cause: str) -> None:
        """Plan what serves anew, and replace it only where that changes something."""
        self._begin("up", lambda: self._replace(cause, only_if_changed=True))

    def reconsider(self) -> None:
        """The request is what serves again: call off a replacement, forget what was wrong with it."""
        instance, coming = self.current, self.incoming
        if instance is None or not same_launch(instance.request, self._request()):
            return
        if coming is not None and not same_launch(coming.request, self._request()):
            self._begin("up", lambda: self._replace("taken back"))
        elif instance.serving and coming is None:
            instance.last_error = None

    def forget(self) -> None:
        """Forget crashes and failures: the user asked for a fresh start (07 §3.11)."""
        self._history.clear()
        self.failure.forget()

    def hurry(self, *, by_command: bool = False) -> bool:
        """End a delay early for a command, or a request where it may (07 §9.6); none may drive downloads."""
        early = self._history.may_start_early and self.failure.reached is not State.FETCHING
        if early or by_command:
            self._pause.cut()
        return early or by_command

    async def settled(self) -> None:
        """Wait until no operation runs and nothing is left that was replaced."""
        while not self.is_settled:
            await self._operations.settled()
            await self.outgoing.settled()

    @property
    def coming(self) -> bool:
        """Whether an instance is up, or on its way up."""
        if self.busy:
            return self._operations.busy_with("up")
        return self.current is not None and self.current.state in UP_OR_COMING

    @property
    def going(self) -> bool:
        """Whether whatever runs was told to end."""
        return self._operations.busy_with("down")

    @property
    def makes_room(self) -> bool:
        """Whether it leaves for another model: its own requests wait until it has gone."""
        return self.going and self._is_evicted

    @property
    def was_evicted(self) -> bool:
        """Whether it is down because it made room for another model."""
        return self._is_evicted and not self.busy

    @property
    def busy(self) -> bool:
        """Whether an operation runs."""
        return self._operations.busy

    @property
    def is_down(self) -> bool:
        """Whether nothing serves or is on its way to."""
        return not self.busy and (self.current is None or self.current.state in (State.STOPPED, State.FAILED))

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing that `settled` would wait for."""
        return not self.busy and not self.outgoing.instances

    @property
    def serves_wanted(self) -> bool:
        """Whether a ready instance runs with the request as it is now."""
        instance = self.current
        return instance is not None and instance.serving and same_launch(instance.request, self._request())

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The serving one first."""
        found = (self.current, self.incoming, *self.outgoing.instances)
        return tuple(instance for instance in found if instance is not None)

    def views(self) -> tuple[InstanceView, ...]:
        """Snapshots of its instances."""
        return tuple(instance.view() for instance in self.instances)

    # Operations: at most one at a time

    def _begin(self, aim: Aim, work: Work) -> None:
        if aim == "up" and self._shop.shutting_down:
            return
        self._is_evicted, self._only_for_requests, self._may_evict = False, False, True
        self._operations.begin(aim, work)

    async def _start(self, cause: str, *, restarts: int = 0) -> None:
        old = self.current
        if old is not None and old.running is not None:
            if self._call_off(old) and same_launch(old.request, self._request()):
                return
            await self._stop(Stop("drain", "instance_replaced", cause))
        instance = self.current = self.make(self._request(), restarts=restarts)
        instance.states.wait = self.failure.told is not None
        self._changed()
        # What crashed may have served with the settings before an edit that failed to start.
        may_go_back = restarts > 0 and self._replacement.can_roll_back
        if not await self.bring_up(instance, cause, last_try=may_go_back) and may_go_back:
            await self._replacement.roll_back(instance)

    def _call_off(self, instance: Instance) -> bool:
        """A drain that is not wanted any more ends, and its instance serves on (07 §4.9)."""
        if instance.state is State.DRAINING and instance.process_alive:
            instance.move(State.READY, "the stop was called off")
            self._changed()
        return instance.serving

    async def bring_up(self, instance: Instance, cause: str, *, last_try: bool = False) -> bool:
        """Plan and launch; True when ready. A failure is recorded on the instance."""
        with suppress(Unwanted):
            failure = await self._starting.get_ready(instance, cause)
            return await self.launch(instance, failure, last_try=last_try)
        return False

    async def launch(
        self, instance: Instance, failure: Failure | None, *, last_try: bool, as_planned: bool = False
    ) -> bool:
        """Climb the ladder, if planning did not fail; True when the instance is ready. Raises
        AnotherPlanNeeded where it is to start `as_planned`."""
        if failure is None:
            climb = await self._starting.launch(instance, as_planned=as_planned)
            instance.result = climb.result
            self._demotion.learn(instance)
            if climb.running is not None:
                pid, port = climb.running.child.pid, climb.running.port
                instance.move(State.READY, "healthy")
                self._voice.ready(instance.name, climb.result, pid=pid, port=port)
                self._serve(instance, climb.running)
                return True
            instance.running = None
            await finish(self._ending.clean(instance))
            failure = climb.result.failure or Failure(INTERNAL_ERROR)
        self._failed(instance, failure, last_try=last_try)
        return False

    def _serve(self, instance: Instance, running: Running) -> None:
        instance.running = running
        instance.idle_since_s = time.monotonic()
        self.failure.succeeded()
        self._replacement.last_good = instance.request
        self._history.started()
        self._shop.ledger.became_ready(instance)
        self._watch.started()
        instance.log.on_lines = instance.meter.saw_lines
        self.load_s = instance.result.load_s if instance.result is not None else self.load_s
        running.child.exited.add_done_callback(lambda code: self._exited(instance, code.result()))
        self._changed()

    async def _replace(
        self, cause: str, *, unconditional: bool = False, only_if_changed: bool = False
    ) -> None:
        old = self.current
        if old is None or not self._call_off(old):
            await self._start(cause)
        elif unconditional or only_if_changed or not same_launch(old.request, self._request()):
            await self._replacement.run(old, cause, only_if_changed=only_if_changed)
        else:
            old.last_error = None

    async def _stop(self, stop: Stop) -> None:
        instance = self.current
        if instance is None or instance.state is State.STOPPED:
            return
        await self._ending.stop(instance, stop)
        self._changed()

    # A process that ends by itself

    def _exited(self, instance: Instance, code: int | None) -> None:
        """Readiness is withdrawn before anything else happens (07 §2.4)."""
        if instance.state is not State.READY:
            return
        ready_s = instance.seconds_ready
        hard = is_hard_fault(code, via_wrapper=bool(instance.plan and instance.plan.engine.via_wrapper))
        instance.last_exit = ExitInfo(code, hard=hard, planned=self.going, seconds_ready=ready_s)
        if self.going:
            # It was told to end and did so before the signal: no crash, and the stop goes on.
            instance.move(State.STOPPING, "the process ended while it was being stopped")
            return
        if hard and len(fresh := [lease for lease in instance.leases if not lease.heard]) == 1:
            # What breaks one engine would break the next one.
            fresh[0].is_suspect = True
        cause = instance.ended_for or self._watch.cause(code, instance.plan, instance.log)
        policy = restart_policy(cause, instance.request.live.restart)
        delay_s = self._history.crashed(time.monotonic(), ready_s, policy)
        if demoted := self._demotion.crashed(instance, hard=hard):
            delay_s = 0.0
            self._voice.demoted(instance, demoted)
        instance.move(State.FAILED if delay_s is None else State.BACKOFF, "the process ended by itself")
        instance.last_error = self._voice.exited(instance.name, instance.last_exit, cause)
        if delay_s is None:
            instance.last_error = self._voice.crash_loop(instance, policy, self._history.count)
            self.failure.files = files_identity(instance.request, instance.plan)
            self._begin("down", lambda: finish(self._ending.bury(instance)))
        else:
            self._begin("up", lambda: self._respawn(instance, delay_s))
        self._changed()

    async def _respawn(self, instance: Instance, delay_s: float) -> None:
        instance.retry_at_s = time.monotonic() + delay_s
        self._pause.reset()
        await finish(self._ending.bury(instance))
        self._changed()
        await self._pause.until(instance.retry_at_s)
        if self.failure.was_refused:
            await self._retry(instance)
            return
        self._voice.respawn(instance, delay_s, demoted=self._demotion.drafting(self._request()) is not None)
        await self._start("restart", restarts=instance.restarts + 1)

    async def _retry(self, instance: Instance) -> None:
        """Another try of what ended before there was a process: no restart, and never for nobody."""
        if self._request().live.load == "on-demand" and not self.failure.is_asked_for:
            instance.move(State.FAILED, "nobody asks for it; the next request tries again")
            self._changed()
            return
        await self._start("another try", restarts=instance.restarts)

    def _failed(self, instance: Instance, failure: Failure, *, last_try: bool) -> None:
        """A start that came to nothing: wait and try again, or give up until something changes.

        `last_try`: something else is done about it, such as going back to the settings before.
        """
        is_known = self.failure.is_known(instance, failure.reason)
        self.failure.note(instance, failure, self._request(), self._shop.ledger)
        retry, fetching = failure.retryable and not last_try, instance.state is State.FETCHING
        policy = instance.request.live.restart
        delay_s = self._history.start_failed(policy, fetching=fetching) if retry else None
        instance.last_error = failure.reason
        if delay_s is None:
            instance.move(State.FAILED, failure.reason.message)
            instance.states.settle(is_told=not is_known)
        else:
            instance.move(State.BACKOFF, f"{failure.reason.code}, next try in {delay_s:.0f} s")
        if not is_known:
            self._voice.failed(failure, instance.result, refused=self.failure.was_refused)
        if delay_s is not None:
            self._operations.afterwards(lambda: self._begin("up", lambda: self._respawn(instance, delay_s)))
        self._changed()

    # Small parts

    @property
    def fails_again(self) -> bool:
        """Whether it failed, and another start for a request would fail the same way."""
        return self.failure.repeats(self.current, self._request(), self._shop.ledger)

    def make(self, request: ModelRequest, *, restarts: int = 0) -> Instance:
        """The next instance, for this request."""
        return self._generations.new(request, restarts=restarts, expected_load_s=self.load_s)

    def _seeker(self, instance: Instance) -> Seeker:
        return Seeker(
            instance,
            prepare=lambda: self._shop.planner.prepare(
                instance.request, self.index, instance.source, withheld=instance.withheld
            ),
            asks=lambda: self._asks(self.index),
            is_wanted=self._is_wanted,
            may_evict=lambda: self._may_evict or self._asks(self.index).waiting > 0,
            is_going=lambda who: who is self.current and self.going,
            evict=self.evict,
            spare=self.spare,
            changed=self._changed,
        )

    def _is_wanted(self) -> bool:
        asks = self._asks(self.index)
        return not self._only_for_requests or asks.waiting > 0 or asks.load == "at-start"
