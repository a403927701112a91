"""One model: asked, granted and running side by side, every reason, slots, process, log (01 §3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from framework.api.shapes.status import source_text
from framework.api.told import verdict_on
from framework.dashboard.charts.timeline import Timeline
from framework.dashboard.pages.compare import CompareTable, compare_table
from framework.dashboard.pages.event_rows import RecentEvents
from framework.dashboard.pages.figures import Figures, figures_fragment
from framework.dashboard.pages.history import model_section
from framework.dashboard.pages.ids import element_id
from framework.dashboard.pages.instance_facts import (
    ProgressFacts,
    model_flags,
    progress_of,
    reasons_of,
    serving_instance,
    whole_s,
)
from framework.dashboard.pages.log import LogView
from framework.dashboard.pages.memory_check import MemoryCheckSection, memory_check_section
from framework.dashboard.pages.pools import WaitingRow, waiting_row
from framework.dashboard.pages.pools_past import timeline_fragment
from framework.dashboard.pages.process import (
    AttemptList,
    CommandLine,
    ProcessFacts,
    attempt_list,
    command_line,
    process_facts,
)
from framework.dashboard.pages.reason_list import ReasonList, reason_list
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.slots import SlotGrid, slot_fragment, slot_grid
from framework.dashboard.pages.waterfall import MemorySection, memory_section
from framework.dashboard.states import UNLOAD_MODES, Action, Look, actions_of, look_of, look_of_model
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url, try_url
from framework.values.history import ModelHistory, nothing_known
from framework.values.instance import InstanceView, ModelView, State
from framework.values.pool import WaitingView
from framework.values.reason import Reason
from framework.values.request import LiveSettings, LoadMode, ModelRequest
from framework.values.units_text import duration

LOAD_MODES: dict[LoadMode, str] = {
    "at-start": "when Paddock starts",
    "on-demand": "at the first request",
    "manual": "only by Load",
}


NOTHING_HELD: Mapping[str, Mapping[str, int]] = {}


@dataclass(frozen=True)
class ModelHead:
    """The model at a glance. `error` is what keeps it from serving."""

    name: str
    display_name: str
    aliases: tuple[str, ...]
    look: Look
    since: datetime | None
    flags: tuple[str, ...]
    progress: ProgressFacts | None
    in_flight: int
    waiting: int
    queue_limit: int
    wait_eta_s: float | None
    memory_wait: WaitingRow | None
    """Its place in the queue for memory, and what it waits for."""
    error: Reason | None
    retry_in_s: float | None
    source: str
    loads: str
    unloads: str
    keeps: str
    """What happens to it when memory is short."""
    try_url: str


@dataclass(frozen=True)
class ModelActions:
    """The buttons. `modes` are the ways to unload, empty where unloading is no choice."""

    actions: tuple[Action, ...]
    modes: tuple[tuple[str, str], ...]
    back: str


@dataclass(frozen=True)
class InstanceSection:
    """One instance, or the model alone while it has none (`process` is None then)."""

    id: str
    heading: str
    look: Look | None
    compare: CompareTable
    reasons: ReasonList
    memory: MemorySection
    memory_check: MemoryCheckSection
    slots: SlotGrid
    process: ProcessFacts | None
    command: CommandLine | None
    attempts: AttemptList


@dataclass(frozen=True)
class InstanceSections:
    """The serving instance first."""

    sections: tuple[InstanceSection, ...]


@dataclass(frozen=True)
class ModelBody:
    """The page but for its log, which outlives the model's place in the manifest."""

    head: ModelHead
    buttons: ModelActions
    hour: Figures
    loaded: Timeline
    instances: InstanceSections
    recent: RecentEvents


@dataclass(frozen=True)
class GoneModel:
    """What takes the place of a body when the model leaves the manifest while its page is open."""

    name: str


@dataclass(frozen=True)
class ModelPage:
    """Everything on `/models/NAME`."""

    shell: Shell
    body: ModelBody
    log: LogView


def body_of(
    view: ModelView,
    recent: RecentEvents,
    loaded: Timeline,
    waiting: WaitingView | None = None,
    held: Mapping[str, Mapping[str, int]] = NOTHING_HELD,
    history: ModelHistory | None = None,
) -> ModelBody:
    """The body of the page; its buttons lead back to it. `waiting`: its first replica that waits.

    `held` is what drivers say that its processes hold, by instance and device.
    """
    actions = actions_of(view)
    unloadable = any(action.label == "Unload" for action in actions)
    return ModelBody(
        head=head_of(view, waiting),
        buttons=ModelActions(actions, UNLOAD_MODES if unloadable else (), model_url(view.request.id)),
        hour=model_section(history or nothing_known(view.request.id)),
        loaded=loaded,
        instances=InstanceSections(tuple(sections_of(view, held))),
        recent=recent,
    )


def head_of(view: ModelView, waiting: WaitingView | None = None) -> ModelHead:
    """The model at a glance."""
    request, serving = view.request, serving_instance(view)
    ready = view.state is State.READY
    return ModelHead(
        name=request.id,
        display_name=request.live.display_name or "",
        aliases=request.live.aliases,
        look=look_of_model(view),
        since=serving.since if serving else None,
        flags=model_flags(view),
        progress=next((fact for i in view.instances if (fact := progress_of(i)) is not None), None),
        in_flight=sum(instance.inflight for instance in view.instances),
        waiting=view.queue.waiting,
        queue_limit=view.queue.limit,
        wait_eta_s=whole_s(view.queue.eta_s) if view.queue.waiting else None,
        memory_wait=None if waiting is None else waiting_row(waiting),
        error=serving.last_error if serving and not ready else None,
        retry_in_s=whole_s(serving.retry_in_s) if serving else None,
        source=source_text(request.source),
        loads=LOAD_MODES[request.live.load],
        unloads=_unloads(request),
        keeps=_keeps(request.live),
        try_url=try_url(request.id),
    )


def sections_of(
    view: ModelView, held: Mapping[str, Mapping[str, int]] = NOTHING_HELD
) -> Iterable[InstanceSection]:
    """A section for each instance, the serving one first; one of the request alone when there is none."""
    serving = serving_instance(view)
    if serving is None:
        yield _section(view, None, "", {})
        return
    several = len(view.instances) > 1
    for instance in sorted(view.instances, key=lambda i: (i.replica, i is not serving, i.generation)):
        heading = _heading(instance, view) if several else ""
        yield _section(view, instance, heading, held.get(instance.instance, {}))


def body_fragment(body: ModelBody) -> Fragment:
    """The body as parts that change on their own."""
    sections = body.instances.sections
    instances = Fragment(
        "instances",
        "_instances.html",
        "instances",
        body.instances,
        outline=tuple(section.id for section in sections),
        parts=tuple(_section_fragment(section) for section in sections),
    )
    parts = (
        Fragment("model-head", "_model_head.html", "head", body.head),
        Fragment("model-actions", "_model_actions.html", "buttons", body.buttons),
        figures_fragment(body.hour),
        timeline_fragment(body.loaded),
        instances,
        Fragment("recent", "_recent.html", "recent", body.recent),
    )
    return Fragment("model", "_model_body.html", "body", body, outline="declared", parts=parts)


def gone_fragment(name: str) -> Fragment:
    """The body of a model that is gone."""
    return Fragment("model", "_model_gone.html", "gone", GoneModel(name), outline="gone")


def _section(
    view: ModelView, instance: InstanceView | None, heading: str, held: Mapping[str, int]
) -> InstanceSection:
    # What the manifest asks now, whatever the instance was started with.
    request, waits = view.request, view.queue.position is not None
    element = element_id("i", instance.instance if instance else request.id)
    result = instance.result if instance else None
    failure = result.failure if result is not None else None
    plan = instance.plan if instance else None
    return InstanceSection(
        id=element,
        heading=heading,
        look=look_of(instance.state, waits_for_memory=waits) if instance else None,
        compare=compare_table(f"{element}-compare", request, instance),
        reasons=reason_list(
            f"{element}-reasons",
            reasons_of(instance, *verdict_on(view, instance)) if instance else (),
            request,
            plan,
            detail=failure.detail if failure else "",
            is_loaded=instance is not None and instance.granted is not None,
        ),
        memory=memory_section(
            f"{element}-memory",
            plan.fit if plan is not None else None,
            of_last_start=instance is not None and instance.granted is None,
        ),
        memory_check=memory_check_section(
            f"{element}-check",
            plan.fit if plan is not None else None,
            instance.running if instance else None,
            held,
        ),
        slots=slot_grid(f"{element}-slots", instance),
        process=process_facts(f"{element}-process", instance) if instance else None,
        command=command_line(f"{element}-command", instance) if instance else None,
        attempts=attempt_list(f"{element}-attempts", result.attempts if result else ()),
    )


def _section_fragment(section: InstanceSection) -> Fragment:
    parts = [
        Fragment(section.compare.id, "_compare.html", "compare", section.compare),
        Fragment(section.reasons.id, "_reasons.html", "reasons", section.reasons),
        Fragment(section.memory.id, "_memory.html", "memory", section.memory),
        Fragment(section.memory_check.id, "_memory_check.html", "check", section.memory_check),
        slot_fragment(section.slots),
        Fragment(section.attempts.id, "_attempts.html", "attempts", section.attempts),
    ]
    if section.process is not None:
        parts.append(Fragment(section.process.id, "_process.html", "process", section.process))
    if section.command is not None:
        parts.append(Fragment(section.command.id, "_command.html", "command", section.command))
    outline = (
        section.heading,
        section.look if section.heading else None,
        section.process is None,
        section.command is None,
    )
    return Fragment(section.id, "_instance.html", "section", section, outline=outline, parts=tuple(parts))


def _heading(instance: InstanceView, view: ModelView) -> str:
    newest = max(i.generation for i in view.instances if i.replica == instance.replica)
    oldest = min(i.generation for i in view.instances if i.replica == instance.replica)
    role = "" if newest == oldest else ", replacement" if instance.generation == newest else ", serving"
    return f"Replica {instance.replica}{role}"


def _keeps(live: LiveSettings) -> str:
    return "stays, it is pinned" if live.pin else f"makes room by priority {live.priority}"


def _unloads(request: ModelRequest) -> str:
    if request.live.load != "on-demand" or request.live.idle_after_s is None:
        return "only by Unload"
    return f"after {duration(request.live.idle_after_s)} without requests"
