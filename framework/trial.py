"""Time one model with its speculation policy and without it, with nothing else running (00 §7).

Called by `paddock bench`. Everything is done as under `paddock up`, by the same planner, recovery and watch:
what is timed is what is served, and the speed without drafting is kept in the state directory, where the next
`up` finds it as a baseline (05 §11.7). Refuses beside a running manager, which would share devices and time.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from framework import state_dir
from framework.engines.probe import CapabilityCache
from framework.engines.spec_args import without_speculation
from framework.hardware.device_cache import DeviceCache
from framework.models.facts import FactsReader
from framework.models.hub.sources import HubSources
from framework.proxy.generation import Job, run_stream
from framework.proxy.model_choice import ModelChoice
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices
from framework.proxy.stream_events import StreamEvent
from framework.reconcile.actions import plan_actions
from framework.reconcile.current import CurrentManifest
from framework.runtime.adoption import still_running
from framework.runtime.fleet import Fleet
from framework.runtime.planner import FactPlanner
from framework.runtime.shop import Shop
from framework.runtime.speed_meter import answer_speed
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog, utc_now
from framework.trial_texts import WORKLOADS, Question, Workload, questions
from framework.values.instance import InstanceView
from framework.values.manifest import Manifest
from framework.values.request import LiveSettings, ModelRequest, SpecPolicy
from framework.values.spec_yield import PLAIN, Drafting

CHAT = "/v1/chat/completions"
ROUTE = "bench"
# The first answer of a process pays for what is made once: caches, compiled kernels.
WARM_UP_TOKENS = 8
SAMPLING: Mapping[str, Any] = {"temperature": 0, "ignore_eos": True, "cache_prompt": False, "stream": True}


@dataclass(frozen=True)
class Effort:
    """How much is asked."""

    requests: int
    """Answers for each workload."""
    tokens: int
    """Length of each answer."""
    at_once: int
    """Requests under way at any moment."""


@dataclass(frozen=True)
class Timing:
    """Answers of one workload by one process. Speeds are of one request."""

    answers: int
    tokens: int
    """Generated in all of them."""
    tokens_per_s: float
    first_token_s: float | None
    """From the request to the first piece of the answer: the median; None where no answer had one."""
    acceptance: float | None
    """Share of drafted tokens that were right; None where nothing was drafted."""


@dataclass(frozen=True)
class Variant:
    """One process and its timings; `instance` says what it asked, resolved and ran."""

    instance: InstanceView
    timings: Mapping[Workload, Timing] = field(default_factory=dict)
    """Empty for a policy that comes to no drafting: that has been timed already."""

    @property
    def running(self) -> str:
        """What drafts, `none` for nothing."""
        result = self.instance.running
        return (result.speculation if result is not None else None) or PLAIN


@dataclass(frozen=True)
class Trial:
    """The model without speculation, and with its policy."""

    plain: Variant
    policy: Variant


class NothingTimed(Exception):
    """The answers of the engine carry no times."""


async def run_trial(
    manifest: Manifest, model_id: str, effort: Effort, environ: Mapping[str, str], say: Callable[[str], None]
) -> Trial:
    """Time the model both ways. Raises ProxyError for a start or an answer that fails, NothingTimed,
    StateDirError beside a running manager or engines that one has left."""
    request = manifest.models[model_id]
    # What the model's own instances saved stays theirs.
    asked = replace(request, live=_undisturbed(request.live), slot_save=False)
    plain = replace(asked, spec=SpecPolicy(mode="off"), extra_args=without_speculation(asked.extra_args))
    directory = state_dir.locate(manifest.path, manifest.server.state_dir)
    state_dir.prepare(directory)
    with state_dir.hold(directory):
        _refuse_beside(await asyncio.to_thread(still_running, directory))
        say(f"{model_id}: without speculation")
        async with _running_fleet(manifest, directory, environ) as fleet:
            first = await _time(fleet, manifest, plain, effort)
        say(f"{model_id}: with its policy, mode {request.spec.mode}")
        async with _running_fleet(manifest, directory, environ) as fleet:
            second = await _time(fleet, manifest, asked, effort, only_drafting=True)
    return Trial(first, second)


def _refuse_beside(kept: Sequence[int]) -> None:
    if kept:
        pids = ", ".join(map(str, kept))
        raise state_dir.StateDirError(
            f"Engines of an earlier `paddock up` still run (processes {pids}): they share devices and time;"
            ' run `paddock up` with on_exit = "stop" and end it, then try again.'
        )


def _undisturbed(live: LiveSettings) -> LiveSettings:
    """Nothing but the trial starts, stops or changes the model."""
    return replace(
        live,
        load="on-demand",
        idle_after_s=None,
        replicas=1,
        rollback=False,
        queue_timeout_s=live.load_timeout_s,
        yield_watch="off",
    )


@asynccontextmanager
async def _running_fleet(
    manifest: Manifest, directory: Path, environ: Mapping[str, str]
) -> AsyncIterator[Fleet]:
    changes = Changes()
    planner = FactPlanner(
        CapabilityCache(),
        environ,
        base_dir=manifest.path.absolute().parent,
        sources=HubSources(environ),
        reader=FactsReader(),
        devices=DeviceCache(),
        state_dir=directory,
    )
    planner.adopt(manifest)
    shop = Shop(EventLog(changes), planner, directory, state_dir.identity(directory))
    fleet = Fleet(shop, changes)
    running = asyncio.create_task(fleet.run())
    try:
        yield fleet
    finally:
        try:
            await fleet.close(manifest.server.shutdown_s)
        except asyncio.CancelledError:
            await fleet.close(0.0)  # a second interrupt does not wait for engines
            raise
        finally:
            running.cancel()
            await asyncio.wait({running})
            await shop.client.close()


async def _time(
    fleet: Fleet, manifest: Manifest, request: ModelRequest, effort: Effort, *, only_drafting: bool = False
) -> Variant:
    """Start the model as asked, and time its answers."""
    server = replace(manifest.server, on_exit="stop")
    alone = replace(manifest, models={request.id: request}, server=server)
    fleet.apply(alone, plan_actions(alone.models, fleet.views()))
    asker = _Asker(ProxyServices(fleet, CurrentManifest(alone, utc_now())), request)
    try:
        await asker.ask(Question("prose", "Say hello."), WARM_UP_TOKENS)
        found = Variant(_serving(fleet, request.id))
        if only_drafting and found.running == PLAIN:
            return found
        timings = {workload: await asker.time(workload, effort) for workload in WORKLOADS}
        return Variant(_serving(fleet, request.id), timings)
    finally:
        await asker.services.close()


def _serving(fleet: Fleet, model_id: str) -> InstanceView:
    """The instance that has just answered."""
    view = fleet.view(model_id)
    for instance in view.instances if view is not None else ():
        if instance.running is not None:
            return instance
    raise NothingTimed(f"The engine of {model_id} ended in the middle of the trial; its log tells why.")


@dataclass
class _Asker:
    """Sends requests the way the endpoint does, and keeps their times."""

    services: ProxyServices
    request: ModelRequest

    async def time(self, workload: Workload, effort: Effort) -> Timing:
        """All questions of a workload, so many at once."""
        waiting = iter(questions(workload, effort.requests))
        answered: list[ActiveRequest] = []

        async def work() -> None:
            for question in waiting:
                answered.append(await self.ask(question, effort.tokens))

        tasks = [asyncio.create_task(work()) for _ in range(effort.at_once)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return timing_of(answered)

    async def ask(self, question: Question, tokens: int) -> ActiveRequest:
        """One request, as it was when it had been answered."""
        services = self.services
        request = ActiveRequest(services.new_id(), services.now(), ROUTE, services.clock())
        choice = ModelChoice(self.request.id, self.request.id, self.request)
        body = {**SAMPLING, "messages": [{"role": "user", "content": question.text}], "max_tokens": tokens}
        await run_stream(Job(services, request, choice, CHAT, lambda _lease, _live: body), _Nowhere())
        return request


class _Nowhere:
    """Takes an answer that nobody reads."""

    async def take(self, events: list[StreamEvent]) -> None:
        """Nothing to do."""


def timing_of(answered: Sequence[ActiveRequest]) -> Timing:
    """Of answers as they were when they had ended. Raises NothingTimed."""
    by = Drafting("", PLAIN)
    speeds = [answer_speed(request.state.timings or {}, by, 1, 0.0) for request in answered]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        raise NothingTimed("The engine's answers carry no times, so nothing can be compared.")
    drafted = sum(speed.drafted for speed in known)
    waits_s = [request.first_token_s for request in answered if request.first_token_s is not None]
    generated = sum(speed.generated for speed in known)
    return Timing(
        len(known),
        generated,
        generated / sum(speed.seconds for speed in known),
        statistics.median(waits_s) if waits_s else None,
        sum(speed.accepted for speed in known) / drafted if drafted else None,
    )
