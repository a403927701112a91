"""Bring an instance from `pending` to the end of its ladder (06, 07 §2). Every fault becomes a failure.

Called by runtime.replica, which decides what a failure means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from framework.runtime import launch, slot_restoring
from framework.runtime.fetching import hub_sources
from framework.runtime.instance import Instance
from framework.runtime.ladder import OF_DEVICE_MEMORY, Climb, Ladder, Tries
from framework.runtime.launch import Running, Site
from framework.runtime.private import Unwritable, made_at, make_private
from framework.runtime.seeker import Seeker, Unwanted
from framework.runtime.shielded import finish
from framework.runtime.shop import Shop
from framework.runtime.smaller import PLANS_PER_START, planned_smaller, smaller_needs
from framework.runtime.voice import Voice
from framework.telemetry.events import utc_now
from framework.values.instance import LoadProgress, State
from framework.values.plan import LaunchPlan, LaunchResult, Withheld
from framework.values.reason import Failure, Reason, Refused

log = logging.getLogger(__name__)

LOADING = frozenset({State.PENDING, State.FETCHING, State.PLANNING, State.STARTING})
INTERNAL_ERROR = Reason(
    "internal_error",
    "Paddock itself failed while it started this model; the log has the details.",
    "Report it with the log; `paddock reload` tries again.",
    "error",
)


class AnotherPlanNeeded(Exception):
    """A launch failed that might succeed with another plan, which goes without what is `withheld`."""

    def __init__(self, failure: Failure, withheld: Withheld) -> None:
        super().__init__(failure.reason.message)
        self.failure = failure
        self.withheld = withheld


class Starting:
    """Starts instances of one replica."""

    def __init__(
        self,
        replica: int,
        shop: Shop,
        voice: Voice,
        site: Callable[[Instance], Site],
        seeker: Callable[[Instance], Seeker],
        changed: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._seeker = seeker
        self._shop = shop
        self._voice = voice
        self._site = site
        self._changed = changed

    async def fetch(self, instance: Instance, cause: str) -> Failure | None:
        """Bring the files of hub sources to this machine; paths have nothing to wait for.

        Not counted as a start: hours of a download must not keep other models from starting.
        """
        instance.move(State.FETCHING, cause)
        self._changed()
        wanted = hub_sources(instance.request)
        if not wanted:
            return None

        def show(progress: LoadProgress) -> None:
            if instance.fetched is None:
                instance.states.settle(is_told=True)
                self._voice.fetching(wanted, progress)
            instance.fetched = progress
            self._shop.events.touch()

        return await self._careful(instance, self._fetch(instance, show))

    async def get_ready(
        self, instance: Instance, cause: str, gone: frozenset[str] = frozenset()
    ) -> Failure | None:
        """Everything before the process: `fetch`, then `plan`."""
        failure = await self.fetch(instance, cause)
        return failure if failure is not None else await self.plan(instance, gone)

    async def plan(self, instance: Instance, gone: frozenset[str] = frozenset()) -> Failure | None:
        """Find out, wait for memory and plan; why not, where that is refused. Raises Unwanted.

        `gone` are instances that end before it starts.
        """
        return await self._plan_within(instance, gone, {})

    async def fits_beside(self, instance: Instance) -> bool:
        """Whether it could start as planned beside everything that runs. REQUIRES: planned."""
        if instance.plan is None:
            return False
        try:
            return await self._shop.admission.fits_beside(self._seeker(instance), instance.plan)
        except Exception:
            log.exception("%s: looking for room beside the running instance failed", instance.name)
            return False

    async def launch(self, instance: Instance, *, as_planned: bool = False) -> Climb:
        """Climb the ladder; where another plan can help, plan again and go on, or raise AnotherPlanNeeded
        where it is to start `as_planned`. REQUIRES: planned."""
        try:
            return await self._launch(instance, as_planned=as_planned)
        except BaseException:
            self._shop.ledger.release(instance)
            raise

    async def _launch(self, instance: Instance, *, as_planned: bool) -> Climb:
        tries, rung, smaller, whole = Tries(), "S", 0, True
        while True:
            async with self._shop.starts.slot():
                climb = await self.climb(instance, tries, rung, as_planned=as_planned)
            plan, failure = instance.plan, climb.result.failure
            if plan is None or failure is None:
                return climb
            if as_planned and _may_do_otherwise(climb, failure):
                is_undivided = climb.result.outcome == "replan"
                withheld = _undivided(instance, failure) if is_undivided else instance.withheld
                raise AnotherPlanNeeded(failure, withheld)
            if climb.result.outcome == "replan":
                if not whole:
                    return _given_up(climb, failure)
                rung, whole = "R1", False
                undivided = await self._plan_undivided(instance, failure)
                if undivided is not None:
                    return _given_up(climb, undivided)
                continue
            smaller += 1
            most = smaller_needs(plan, failure, again=smaller > 1) if smaller < PLANS_PER_START else {}
            if not most or not await self._plan_smaller(instance, failure, most):
                return climb

    async def _plan_undivided(self, instance: Instance, failure: Failure) -> Failure | None:
        """Another plan, which divides layers over devices instead of tensors (06 §12.2 R1); why not."""
        instance.withheld = _undivided(instance, failure)
        await self._give_back(instance)
        refused = await self._plan_within(instance, frozenset(), {})
        if refused is not None:
            instance.move(State.STARTING, "it cannot be planned without dividing tensors")
            return refused
        self._explain(instance, failure.reason)
        return None

    async def _plan_smaller(self, instance: Instance, failure: Failure, most: Mapping[str, int]) -> bool:
        """Whether there is another plan, which needs less of each device."""
        before = instance.plan
        await self._give_back(instance)
        if await self._plan_within(instance, frozenset(), most) is not None:
            instance.plan = before
            instance.move(State.STARTING, "nothing smaller is possible")
            return False
        self._explain(instance, planned_smaller(most, failure))
        return True

    async def _give_back(self, instance: Instance) -> None:
        """What the process of the last attempt had."""
        instance.running = None
        await finish(self._site(instance).clean())
        self._shop.ledger.release(instance)

    def _explain(self, instance: Instance, reason: Reason) -> None:
        """Why the plan is another than the first one."""
        plan = instance.plan
        if plan is not None and reason not in plan.reasons:
            instance.plan = replace(plan, reasons=(reason, *plan.reasons))
            self._voice.say("degraded", reason.message, reason=reason)

    async def _plan_within(
        self, instance: Instance, gone: frozenset[str], most: Mapping[str, int]
    ) -> Failure | None:
        if instance.state is not State.PLANNING:
            instance.move(State.PLANNING, "looking at files, engine and memory")
            self._changed()
        return await self._careful(instance, self._plan(instance, gone, most))

    async def _fetch(self, instance: Instance, show: Callable[[LoadProgress], None]) -> None:
        instance.source = await self._shop.planner.fetch(instance.request, show)
        if not instance.source.from_cache:
            self._voice.fetched(instance.source)

    async def _plan(self, instance: Instance, gone: frozenset[str], most: Mapping[str, int]) -> None:
        seeker = self._seeker(instance)
        seeker.gone, seeker.ceilings = gone, most
        instance.plan = plan = await self._shop.admission.admit(seeker)
        instance.withheld = instance.withheld.for_engine(plan.engine.file)
        instance.states.settle(is_told=True)
        self._voice.planned(plan)

    async def _careful(self, instance: Instance, step: Coroutine[Any, Any, None]) -> Failure | None:
        """Run a step before the process; every way it can go wrong as a failure."""
        try:
            await step
        except Refused as refusal:
            return refusal.failure
        except Unwanted:
            ended_early(instance, "nobody waits for it any more")
            raise
        except asyncio.CancelledError:
            ended_early(instance)
            raise
        except Exception:
            log.exception("%s: planning failed", instance.name)
            return Failure(INTERNAL_ERROR)
        return None

    async def climb(self, instance: Instance, tries: Tries, rung: str, *, as_planned: bool = False) -> Climb:
        """All attempts with one plan. A cancelled climb leaves a stopped instance and no process."""
        instance.move(State.STARTING, "planned")
        self._changed()
        try:
            return await self._climb(instance, tries, rung, as_planned=as_planned)
        except asyncio.CancelledError:
            await finish(self._site(instance).clean())
            ended_early(instance)
            raise
        except Unwritable as error:
            return Climb(LaunchResult("failed", failure=_no_room(error)), None)
        except Exception:
            log.exception("%s: the start failed", instance.name)
            return Climb(LaunchResult("failed", failure=Failure(INTERNAL_ERROR)), None)

    async def _climb(self, instance: Instance, tries: Tries, rung: str, *, as_planned: bool) -> Climb:
        if instance.plan is None:
            raise RuntimeError(f"{instance.name} has no plan")
        site = self._site(instance)
        with made_at(site.run_dir):
            await asyncio.to_thread(make_private, site.run_dir)
        instance.plan, no_folder = await slot_restoring.with_folder(site, instance.plan)
        if no_folder is not None:
            self._explain(instance, no_folder)

        def spawned(running: Running) -> None:
            instance.running = running
            self._changed()

        ladder = Ladder(
            instance.plan,
            site,
            log_stem=f"llama-{utc_now():%Y%m%dT%H%M%S}",
            mark=f"{self._shop.state_id}:{instance.name}",
            timeout_s=lambda: instance.request.live.load_timeout_s,
            on_spawn=spawned,
            on_attempt=self._voice.attempted,
            on_survivors=lambda pids: self._outlived(instance, pids),
            tries=tries,
            rung=rung,
            as_planned=as_planned,
        )
        climb = await ladder.climb()
        if climb.running is not None and climb.plan is not None:
            await self._complete(instance, climb.running, climb.plan, climb.result)
        return climb

    async def _complete(
        self, instance: Instance, running: Running, plan: LaunchPlan, result: LaunchResult
    ) -> None:
        """Give it the slots that were saved, before it gets requests (07 §11.9), and note what it turned out
        to be (§6.2); cancelled, end it. `plan` is as the last attempt left it."""
        site = self._site(instance)
        try:
            if instance.before_slots is not None:
                await instance.before_slots()
            timeout_s = instance.request.live.slot_save_timeout_s
            instance.loaded = await slot_restoring.restore(
                site, running, plan, result, self._voice, timeout_s=timeout_s
            )
            await asyncio.to_thread(site.trace.commit, instance.plan or plan, result, instance.loaded)
        except BaseException:
            if survivors := (await launch.stop(site, running)).survivors:
                self._outlived(instance, survivors)
            raise

    def _outlived(self, instance: Instance, pids: tuple[int, ...]) -> None:
        self._shop.ledger.outlived(instance, pids)
        self._voice.unkillable(instance.name, pids)


def _may_do_otherwise(climb: Climb, failure: Failure) -> bool:
    """Whether a launch that failed beside another instance may succeed in its place."""
    return failure.reason.code in OF_DEVICE_MEMORY or climb.result.outcome == "replan"


def _undivided(instance: Instance, failure: Failure) -> Withheld:
    """What it goes without once dividing tensors has failed."""
    engine = instance.plan.engine.file if instance.plan is not None else None
    return replace(instance.withheld, tensor=failure.reason, engine=engine)


def _given_up(climb: Climb, failure: Failure) -> Climb:
    """A start that no other plan could save."""
    return Climb(replace(climb.result, outcome="failed", failure=failure), None)


def _no_room(error: Unwritable) -> Failure:
    reason = Reason(
        "state_dir_unusable",
        f"The state directory cannot be used: {error.filename}: {error.strerror}.",
        "Free space or correct its rights; the model is tried again by itself.",
        "error",
        {"path": error.filename},
    )
    return Failure(reason, retryable=True)


def ended_early(instance: Instance, cause: str = "cancelled") -> None:
    """A start that was cancelled: its process is gone already (06 §12.9)."""
    if instance.state in LOADING:
        instance.running = None
        instance.move(State.STOPPED, cause)
