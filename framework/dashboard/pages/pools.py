"""The Pools page: what each device holds, who leaves next, who waits and for what (01 §3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.dashboard.pages.device_bar import (
    LEGEND,
    LEGEND_OF_BUDGETS,
    DeviceBar,
    Legend,
    bar_of_use,
    numbers_of,
)
from framework.dashboard.pages.device_list import KINDS
from framework.dashboard.pages.ids import element_id
from framework.dashboard.pages.instance_facts import whole_s
from framework.dashboard.pages.pools_past import PoolsPast
from framework.dashboard.pages.shell import Shell
from framework.dashboard.states import Action, Tone, actions_of
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url
from framework.values.device_words import CPU, REMOTE
from framework.values.instance import ModelView
from framework.values.pool import DeviceUse, PoolView, Resident, WaitingView
from framework.values.reason import Reason
from framework.values.request import PoolLimits
from framework.values.units_text import UNKNOWN, counted, duration, percent, size

POOLS = "/pools"
GPU_NOT_LISTED = "gpu_not_listed"
# An idle time is shown in steps: finer ones would only be sent, and nobody reads them.
IDLE_STEPS_S = ((60.0, 5), (3600.0, 60))
LONG_IDLE_STEP_S = 600


@dataclass(frozen=True)
class PoolDevice:
    """One device of a pool. `scale` says what the picture is of, where that is not the whole device."""

    name: str
    kind: str
    description: str
    scale: str
    bar: DeviceBar
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ResidentRow:
    """An instance that holds memory. `leaves` says when it would make room, or why it would not."""

    id: str
    model: str
    url: str
    replica: str
    state: str
    tone: Tone
    icon: str
    memory: str
    devices: tuple[tuple[str, str], ...]
    pages: str
    """Pages of model files besides, which the system may drop; empty for none."""
    idle: str
    priority: int
    pinned: bool
    leaves: str
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class WaitingRow:
    """A replica that waits for memory, with its place in the queue of its pool."""

    model: str
    url: str
    replica: str
    position: int
    requests: int
    waited_s: float | None
    eta_s: float | None
    reason: Reason


@dataclass(frozen=True)
class Devices:
    """The devices of a pool. `listing`: they are being listed for the first time."""

    id: str
    rows: tuple[PoolDevice, ...]
    listing: bool


@dataclass(frozen=True)
class Residents:
    """Who holds memory of a pool."""

    id: str
    rows: tuple[ResidentRow, ...]
    back: str


@dataclass(frozen=True)
class Waiting:
    """Who waits for memory of a pool."""

    id: str
    rows: tuple[WaitingRow, ...]


@dataclass(frozen=True)
class PoolSection:
    """One pool. `rules` are its limits in words."""

    id: str
    name: str
    asked: str
    rules: tuple[str, ...]
    evictions: int
    lacks: str
    """What is missing where it should be; empty for nothing."""
    devices: Devices
    residents: Residents
    waiting: Waiting


@dataclass(frozen=True)
class PoolSections:
    """All pools, and what is wrong with their devices."""

    sections: tuple[PoolSection, ...]
    reasons: tuple[Reason, ...]
    legend: tuple[Legend, ...] = LEGEND


@dataclass(frozen=True)
class PoolsPage:
    """Everything on `/pools`."""

    shell: Shell
    pools: PoolSections
    past: PoolsPast


def pool_sections(
    pools: Iterable[PoolView], models: Iterable[ModelView], devices: DevicesAnswer
) -> PoolSections:
    """The pools in declared order."""
    views = {view.request.id: view for view in models}
    seen = tuple(pools)
    hidden = any(reason.code == GPU_NOT_LISTED for reason in devices.reasons)
    sections = tuple(_section(pool, views, devices.sampled_at, hides_gpu=hidden) for pool in seen)
    counted_pages = any(_counts_pages(pool, use) for pool in seen for use in pool.devices)
    return PoolSections(sections, devices.reasons, LEGEND_OF_BUDGETS if counted_pages else LEGEND)


def pools_fragments(pools: PoolSections) -> tuple[Fragment, ...]:
    """The page as parts that change on their own."""
    outline = (tuple(section.id for section in pools.sections), pools.reasons, pools.legend)
    parts = tuple(_section_fragment(section) for section in pools.sections)
    return (Fragment("pools", "_pools.html", "pools", pools, outline=outline, parts=parts),)


def waiting_row(waiting: WaitingView) -> WaitingRow:
    """A replica that waits for memory."""
    return WaitingRow(
        model=waiting.model,
        url=model_url(waiting.model),
        replica=_replica(waiting.replica),
        position=waiting.position,
        requests=waiting.requests,
        waited_s=whole_s(waiting.waited_s),
        # Measured times say nothing where nobody makes room.
        eta_s=None if waiting.reason.severity == "error" else whole_s(waiting.eta_s),
        reason=waiting.reason,
    )


def _section_fragment(section: PoolSection) -> Fragment:
    parts = (
        Fragment(section.devices.id, "_pool_devices.html", "devices", section.devices),
        Fragment(section.waiting.id, "_pool_waiting.html", "waiting", section.waiting),
        Fragment(section.residents.id, "_pool_residents.html", "residents", section.residents),
    )
    outline = (section.name, section.asked, section.rules, section.evictions, section.lacks)
    return Fragment(section.id, "_pool.html", "pool", section, outline=outline, parts=parts)


def _section(
    pool: PoolView, views: Mapping[str, ModelView], listed_at: datetime | None, *, hides_gpu: bool
) -> PoolSection:
    element = element_id("pool", pool.limits.name)
    order = {instance: place for place, instance in enumerate(pool.next_to_leave, 1)}
    by_turn = sorted(pool.residents, key=lambda one: order.get(one.instance, len(order) + 1))
    rows = tuple(_resident(one, order.get(one.instance), pool, views) for one in by_turn)
    devices = tuple(_device(use, pool) for use in pool.devices)
    listing = listed_at is None and not pool.devices
    return PoolSection(
        id=element,
        name=pool.limits.name,
        asked=", ".join(pool.limits.devices),
        rules=tuple(_rules(pool.limits)),
        evictions=pool.evictions,
        lacks=_lacks(pool) if hides_gpu else "",
        devices=Devices(f"{element}-devices", devices, listing),
        residents=Residents(f"{element}-residents", rows, f"{POOLS}#{element}"),
        waiting=Waiting(f"{element}-waiting", tuple(map(waiting_row, pool.waiting))),
    )


def _lacks(pool: PoolView) -> str:
    """What of a pool an engine should list and does not, although a driver is there (case MD-09)."""
    if set(pool.limits.devices) == {CPU} or any(use.kind == "gpu" for use in pool.devices):
        return ""
    return f"0 {'GPUs' if pool.devices else 'devices'} (driver present)"


def _device(use: DeviceUse, pool: PoolView) -> PoolDevice:
    kind = KINDS.get(use.kind, use.kind)
    budget_bytes = _budget_bytes(use, pool.limits)
    mapped_bytes = 0
    if _counts_pages(pool, use):
        # A budget of host memory is for the models of its pool; all others are on it as well.
        use = _of_pool(use, pool)
        mapped_bytes = sum(one.mapped.get(use.name, 0) for one in pool.residents)
    return PoolDevice(
        name=use.name,
        kind=kind,
        description="" if use.description == kind else use.description,
        scale="" if budget_bytes is None else f"The picture is of the budget of {size(budget_bytes)}.",
        bar=bar_of_use(use, budget_bytes, mapped_bytes),
        numbers=numbers_of(use, mapped_bytes),
    )


def _budget_bytes(use: DeviceUse, limits: PoolLimits) -> int | None:
    """The budget on a device, unless that is all of it."""
    budget = limits.budget_bytes
    return None if budget is None or 0 < use.total_bytes <= budget else budget


def _counts_pages(pool: PoolView, use: DeviceUse) -> bool:
    """Whether pages of files count as held: they can be dropped, but a budget is for them too."""
    return use.kind == "cpu" and _budget_bytes(use, pool.limits) is not None


def _of_pool(use: DeviceUse, pool: PoolView) -> DeviceUse:
    """A device with the plans of models of its pool alone."""
    promised = sum(one.bytes.get(use.name, 0) for one in pool.residents if one.holding == "promised")
    together = sum(one.bytes.get(use.name, 0) for one in pool.residents)
    return replace(use, planned_bytes=together - promised, promised_bytes=promised)


def _resident(
    resident: Resident, place: int | None, pool: PoolView, views: Mapping[str, ModelView]
) -> ResidentRow:
    waits = any((one.model, one.replica) == (resident.model, resident.replica) for one in pool.waiting)
    state, tone, icon = _state(resident, waits=waits)
    view = views.get(resident.model)
    unloads = () if view is None else tuple(one for one in actions_of(view) if one.verb == "unload")
    return ResidentRow(
        id=element_id("r", resident.instance),
        model=resident.model,
        url=model_url(resident.model),
        replica=_replica(resident.replica),
        state=state,
        tone=tone,
        icon=icon,
        memory=size(resident.total_bytes),
        devices=tuple((name, size(count)) for name, count in resident.bytes.items() if count),
        pages=size(mapped) if (mapped := sum(resident.mapped.values())) else "",
        idle=_idle(resident),
        priority=resident.priority,
        pinned=resident.pinned,
        leaves=_leaves(resident, place, pool.limits, waits=waits),
        actions=unloads,
    )


def _state(resident: Resident, *, waits: bool) -> tuple[str, Tone, str]:
    """In words, with tone and icon. `waits`: what it was promised is not free yet."""
    if resident.holding == "promised":
        return ("waiting for memory", "wait", "clock") if waits else ("loading", "busy", "spin")
    if resident.holding == "stuck":
        return "killed, does not end", "bad", "cross"
    if resident.holding == "leaving":
        return "leaving", "wait", "drain"
    if resident.leases:
        return f"serves {counted(resident.leases, 'request')}", "ok", "check"
    return "idle", "idle", "circle"


def _idle(resident: Resident) -> str:
    if resident.holding != "resident" or resident.leases:
        return UNKNOWN
    steps = (step for limit, step in IDLE_STEPS_S if resident.idle_s < limit)
    step = next(steps, LONG_IDLE_STEP_S)
    return duration(float(resident.idle_s // step * step))


def _leaves(resident: Resident, place: int | None, limits: PoolLimits, *, waits: bool) -> str:
    if place is not None:
        turn = "next" if place == 1 else f"as number {place}"
        return f"{turn}, for priority {resident.yields_to} and above"
    if resident.pinned:
        return "never: it is pinned"
    if resident.holding == "leaving":
        return "now"
    if resident.holding == "promised":
        return "is not there yet" if waits else "not while it loads"
    if resident.holding == "stuck":
        return "when the system lets go of its process"
    return "never: the pool evicts nobody" if limits.evict == "never" else "not now"


def _replica(number: int) -> str:
    """The first one is the model; only others are worth a word."""
    return f"replica {number}" if number else ""


def _rules(limits: PoolLimits) -> Iterable[str]:
    has_budget = limits.budget_bytes is not None
    if has_budget:
        yield f"at most {size(limits.budget_bytes)} of each device"
    if set(limits.devices) != {CPU}:
        what = "device" if any(name.startswith(REMOTE) for name in limits.devices) else "GPU"
        yield f"{percent(limits.fill)} of {'that' if has_budget else f'each {what}'} may be planned"
    if limits.reserve_bytes:
        yield f"{size(limits.reserve_bytes)} of {'that' if has_budget else 'each device'} stay free"
    yield "idle models make room" if limits.evict == "idle" else "no model is unloaded to make room"
    if limits.offload == "forbid":
        yield "layers stay on GPUs"
