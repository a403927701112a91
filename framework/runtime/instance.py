"""One process lifetime of a replica: its state, its leases, its facts (07 §2).

Changed only by its replica, on the event loop, in synchronous code; read by everybody through `view`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from framework.models.hub.facts import ResolvedSource
from framework.models.progress import ResidentMark, load_progress, resident_bytes
from framework.planning.slot_saving.fingerprint import Loaded
from framework.planning.speculation.profit import INACTIVE, inactive
from framework.runtime.engine_client import auth_headers, base_url
from framework.runtime.launch import Running
from framework.runtime.lease import Lease, RevokeCode
from framework.runtime.logs import LogBuffer
from framework.runtime.records import Committed, Named
from framework.runtime.speed_keys import drafting_of
from framework.runtime.speed_meter import SpeedMeter
from framework.runtime.state_events import StateEvents
from framework.telemetry.events import EventLog, utc_now
from framework.values.instance import ExitInfo, InstanceView, LoadProgress, Slot, State
from framework.values.naming import instance_file_name, instance_name
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, LaunchResult, Withheld
from framework.values.reason import Reason
from framework.values.reasoning import NO_REASONING
from framework.values.request import LiveSettings, ModelRequest, PoolLimits
from framework.values.spec_yield import PLAIN, AnswerSpeed

WITHOUT_PROCESS = frozenset({State.STOPPED, State.FAILED, State.BACKOFF, State.PENDING})
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.FETCHING, State.READY, State.STOPPED}),
    State.FETCHING: frozenset({State.PLANNING, State.FAILED, State.BACKOFF, State.STOPPED}),
    State.PLANNING: frozenset({State.STARTING, State.FAILED, State.BACKOFF, State.STOPPED}),
    State.STARTING: frozenset(
        {State.READY, State.PLANNING, State.FAILED, State.BACKOFF, State.STOPPING, State.STOPPED}
    ),
    State.READY: frozenset({State.DRAINING, State.STOPPING, State.BACKOFF, State.FAILED}),
    State.DRAINING: frozenset({State.STOPPING, State.STOPPED, State.READY}),
    State.STOPPING: frozenset({State.STOPPED}),
    State.BACKOFF: frozenset({State.PENDING, State.FAILED, State.STOPPED}),
    State.FAILED: frozenset({State.PENDING, State.STOPPED}),
    State.STOPPED: frozenset(),
}
"""The table of 07 §2.2. `ready -> failed` is the crash that ends a crash loop, `draining -> ready` a stop
that was called off (07 §4.9), `pending -> ready` a process that an earlier manager left behind (07 §8.7)."""


# Rungs of the ladder after which a process is as fast as its plan says, speculation apart (06 §12.2).
AS_FAST_AS_PLANNED = frozenset({"S", "P", "R1", "R4"})


class IllegalTransition(Exception):
    """A state change that 07 §2.2 does not know: a fault in our code."""

    def __init__(self, instance: str, old: State, new: State) -> None:
        super().__init__(f"{instance}: {old} -> {new} is no transition")


class Instance:
    """One process lifetime. `request` is what it was started with, its `live` part the newest one."""

    withheld: Withheld = NOTHING_WITHHELD
    """What it is planned without."""
    ended_for: Reason | None = None
    """Why its process was ended by us although nobody asked for that."""
    demoted: Reason | None = None
    """Why what follows its crash serves without drafting."""
    before_slots: Callable[[], Awaitable[None]] | None = None
    """What is to be done before it is given the slots that were saved."""
    retry_at_s: float | None = None
    """When the next start begins, while one waits."""
    silent: Reason | None = None
    """What is shown while it leaves health checks without an answer; others come first meanwhile."""
    prompt_tokens_per_s: float | None = None
    generation_tokens_per_s: float | None = None
    heard: int = 0
    """How often its process brought something to a request whose lease was given back."""

    def __init__(
        self,
        request: ModelRequest,
        replica: int,
        generation: int,
        *,
        events: EventLog,
        restarts: int,
        on_idle: Callable[[Instance], None],
        on_answer: Callable[[AnswerSpeed], None] = lambda _: None,
        epoch: Callable[[], int] = lambda: 0,
        log: LogBuffer | None = None,
    ) -> None:
        """`on_idle` is called when the last of its leases was given back, `on_answer` for each answer whose
        speed is known. `epoch` tells which command its events belong to; `log` takes what its processes
        print."""
        self.request = request
        self.replica = replica
        self.generation = generation
        self.name = instance_name(request.id, replica, generation)
        self.file_name = instance_file_name(request.id, replica, generation)
        self.state = State.PENDING
        self.since = utc_now()
        self.changed_s = time.monotonic()
        self.restarts = restarts
        self.log = log or LogBuffer()
        self.expected_load_s: float | None = None
        """How long the last load of this replica took, for the estimate in `progress`."""
        self.source: ResolvedSource | None = None
        """Where its files lie, when they had to be found or downloaded."""
        self.fetched: LoadProgress | None = None
        """How far the download of its files is; None when nothing had to be downloaded."""
        self.plan: LaunchPlan | None = None
        self.result: LaunchResult | None = None
        self.running: Running | None = None
        self.loaded: Loaded | None = None
        """What its slots belong to; None where they are not saved."""
        self.last_error: Reason | None = None
        self.last_exit: ExitInfo | None = None
        self.leases: set[Lease] = set()
        self.idle_since_s = time.monotonic()
        self.slots: tuple[Slot, ...] = ()
        self.sampled_s: float | None = None
        self._events = events
        self._on_idle = on_idle
        self._on_answer = on_answer
        self._epoch = epoch
        self.meter = SpeedMeter()
        """What it drafts and how fast it answers; its log's lines are to be shown to it while it is ready."""
        self._ready_s: float | None = None
        self.states = StateEvents(lambda message, data: self._say("state", message, data=data))
        self._idle = asyncio.Event()
        self._idle.set()
        self._resident = ResidentMark()

    def move(self, new: State, cause: str) -> None:
        """Change state, with an event that says why. Raises IllegalTransition."""
        if new not in TRANSITIONS[self.state]:
            raise IllegalTransition(self.name, self.state, new)
        old, self.state = self.state, new
        self.since, self.changed_s = utc_now(), time.monotonic()
        if new is State.READY and old is not State.DRAINING:
            if self._ready_s is None:
                self._ready_s = self.changed_s
            self._begin_measuring()
        if new in (State.STOPPED, State.FAILED, State.BACKOFF):
            self.slots, self.sampled_s = (), None
            self.prompt_tokens_per_s = self.generation_tokens_per_s = None
        self.states.add(old, new, cause, {"epoch": self._epoch()})
        self._events.touch()

    def _begin_measuring(self) -> None:
        """Not where a rung changed what would be compared: layers moved away are no fault of drafting."""
        rungs = {attempt.rung for attempt in self.result.attempts} if self.result is not None else set()
        if self.plan is not None and self.result is not None and rungs <= AS_FAST_AS_PLANNED:
            self.meter.drafting = drafting_of(self.plan, self.result, self.changed_s)
            self.meter.slots = self.result.slots

    def inherit(self, committed: Committed) -> None:
        """Ready as a process that an earlier manager started, with what that knew of it (07 §8.7)."""
        self.plan = replace(committed.plan, request=self.request)
        self.result = committed.result
        if (loaded := committed.loaded) is not None:
            self.loaded = replace(loaded, plan=replace(loaded.plan, request=self.request))
        ready_for_s = max(0.0, (utc_now() - committed.ready_at).total_seconds())
        self._ready_s = time.monotonic() - ready_for_s
        self.move(State.READY, "taken over from an earlier manager")
        self.since = committed.ready_at

    def update_live(self, live: LiveSettings) -> None:
        """New live settings, effective at once."""
        self.request = replace(self.request, live=live)

    def update_pool(self, pool: PoolLimits, devices: tuple[str, ...] | None) -> None:
        """Another pool, or another pick in it, that has the devices in use as well (07 §3.7)."""
        self.request = replace(self.request, pool=pool, devices=devices)

    @property
    def named(self) -> Named:
        """Who it is, for the record of its process."""
        return Named(self.request, self.replica, self.generation, self.restarts)

    @property
    def may_stay(self) -> bool:
        """Whether it can be left to the next manager: it serves, and its process is not tied to this one."""
        return self.serving and self.running is not None and self.running.child.is_kept

    @property
    def serving(self) -> bool:
        """Loaded in the sense of 07 §1.3: process alive, ready, not draining."""
        return self.state is State.READY and self.running is not None and self.running.child.alive

    @property
    def reachable(self) -> bool:
        """Serving, and its process has not ended in a moment of which we do not know yet."""
        return self.serving and self.running is not None and not self.running.child.is_over()

    @property
    def is_drafting(self) -> bool:
        """Whether its process guesses tokens ahead, by whatever means."""
        by = self.meter.drafting
        return by is not None and by.running != PLAIN

    @property
    def process_alive(self) -> bool:
        """Whether a process of this instance exists."""
        return self.running is not None and self.running.child.alive

    def end_for(self, reason: Reason) -> None:
        """Kill the process because it does harm; what follows is what follows a crash."""
        if self.running is not None:
            self.ended_for = reason
            for lease in self.leases:
                lease.ended_for = reason
            self.running.child.give_up()

    async def exit_seen(self, timeout_s: float) -> bool:
        """Whether its process is over, waiting so long for it; what follows an exit has run when it is."""
        if self.running is not None:
            await asyncio.wait({self.running.child.exited}, timeout=timeout_s)
            await asyncio.sleep(0)
        return not self.process_alive

    @property
    def rest_s(self) -> float:
        """Seconds until the next start while one waits, else 0.0."""
        if self.state is not State.BACKOFF or self.retry_at_s is None:
            return 0.0
        return max(0.0, self.retry_at_s - time.monotonic())

    @property
    def seconds_ready(self) -> float:
        """Seconds since it became ready, 0.0 when it never did."""
        return time.monotonic() - self._ready_s if self._ready_s is not None else 0.0

    @property
    def seconds_in_state(self) -> float:
        """Seconds since the last change of state."""
        return time.monotonic() - self.changed_s

    # Leases

    def lease(self) -> Lease:
        """A new lease. REQUIRES: serving; for work that is nobody's request, that its process is there."""
        running = self.running
        if running is None:
            raise IllegalTransition(self.name, self.state, State.READY)
        lease = Lease(
            instance=self.name,
            model=self.request.id,
            replica=self.replica,
            generation=self.generation,
            base_url=base_url(running.port),
            headers=auth_headers(running.key),
            request=self.request,
            slot_context=self.slot_context,
            vision=self.result.vision if self.result else False,
            revoked=asyncio.get_running_loop().create_future(),
            on_release=self._released,
            audio=self.result.audio if self.result else False,
            reasoning=self.plan.reasoning if self.plan else NO_REASONING,
            is_over=running.child.is_over,
        )
        self.leases.add(lease)
        self.meter.opened(lease, time.monotonic())
        self._idle.clear()
        return lease

    def revoke(self, code: RevokeCode) -> int:
        """Tell every holder to end its request; the number of leases that were open."""
        for lease in self.leases:
            if not lease.revoked.done():
                lease.revoked.set_result(code)
        return len(self.leases)

    async def wait_idle(self, timeout_s: float | None) -> bool:
        """Wait until no lease is open or the process is gone; False when time is over. None has no end."""
        idle = asyncio.ensure_future(self._idle.wait())
        watched: set[asyncio.Future[Any]] = {idle}
        if self.running is not None:
            watched.add(self.running.child.exited)
        try:
            await asyncio.wait(watched, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            idle.cancel()
        return not self.leases or not self.process_alive

    def _released(self, lease: Lease) -> None:
        self.leases.discard(lease)
        self.heard += lease.heard
        if (speed := self.meter.closed(lease, time.monotonic())) is not None:
            self._look_at_drafting()
            self._on_answer(speed)
        if not self.leases:
            self.idle_since_s = time.monotonic()
            self._idle.set()
            self._on_idle(self)
        self._events.touch()

    def _look_at_drafting(self) -> None:
        """Say when what was started to draft never does, and take it back when it does after all."""
        result, totals = self.result, self.meter.totals
        if result is None:
            return
        told = result.speculation_reason
        if told is None:
            reason = inactive(result.speculation, totals)
            if reason is not None:
                self.result = replace(result, speculation_reason=reason)
                self._say("degraded", reason.message, reason=reason)
        elif told.code == INACTIVE and totals.drafted:
            drafts = told.evidence.get("asked", result.speculation)
            self.result = replace(result, speculation=drafts, speculation_reason=None)
            self._begin_measuring()

    def _say(
        self, kind: str, message: str, *, reason: Reason | None = None, data: Mapping[str, Any] | None = None
    ) -> None:
        about = {"instance": self.name, "epoch": self._epoch(), **(data or {})}
        self._events.record(
            kind, message, model=self.request.id, replica=self.replica, reason=reason, data=about
        )

    # What readers see

    @property
    def slot_context(self) -> int:
        """Tokens one slot can hold; 0 while unknown."""
        if self.result is None or self.plan is None or not self.result.context:
            return 0
        return self.result.context if self.plan.unified else self.result.context // max(1, self.result.slots)

    def progress(self) -> LoadProgress | None:
        """How far the download, or loading, has come; the latter is read from the process now (02 §13)."""
        if self.state is State.FETCHING:
            return self.fetched
        if self.plan is None or self.running is None or not self.process_alive:
            return None
        if self.state is not State.STARTING:
            return None
        held = resident_bytes(self.running.child.pid)
        if held is None:
            return None
        mark = self._resident.observe(self.running.child.pid, held)
        progress = load_progress(mark, self.plan.file_bytes, healthy=False, file=self.plan.main_gguf.name)
        if self.expected_load_s is None:
            return progress
        return replace(progress, eta_s=max(0.0, self.expected_load_s - self.seconds_in_state))

    def _shown_result(self) -> LaunchResult | None:
        """That it does not answer at the moment stands beside what it does without."""
        result = self.result
        if result is None or self.silent is None:
            return result
        return replace(result, degradations=(self.silent, *result.degradations))

    def view(self) -> InstanceView:
        """An immutable snapshot."""
        running, now = self.running, time.monotonic()
        process = self.state not in WITHOUT_PROCESS and running is not None
        stale_s = now - self.sampled_s if self.sampled_s is not None else 0.0
        return InstanceView(
            instance=self.name,
            model=self.request.id,
            replica=self.replica,
            generation=self.generation,
            state=self.state,
            since=self.since,
            restarts=self.restarts,
            last_error=self.last_error,
            progress=self.progress(),
            pid=running.child.pid if running and process else None,
            port=running.port if running and process else None,
            request=self.request,
            plan=self.plan,
            result=self._shown_result(),
            last_exit=self.last_exit,
            inflight=len(self.leases),
            idle_s=now - self.idle_since_s if self.serving and not self.leases else None,
            slots=tuple(replace(slot, stale_s=round(stale_s, 3)) for slot in self.slots),
            prompt_tokens_per_s=self.prompt_tokens_per_s,
            generation_tokens_per_s=self.generation_tokens_per_s,
            retry_in_s=self.rest_s if self.state is State.BACKOFF else None,
            speculation=self.meter.totals,
        )
