"""What a new manifest would do to memory: each model that changes, and every device before and after.

Called by inquiry for the preview of an edit. Plans as a start would be planned, on devices as they will be
once what ends has ended. Starts no model.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from framework.api.answers import DeviceOutlook, ModelOutlook, Outlook, RefusedInstance
from framework.hardware.devices import DeviceList
from framework.hardware.unified import after_return
from framework.runtime.planner import Prepared
from framework.values.action import ModelAction
from framework.values.device import Device
from framework.values.instance import InstanceView, ModelView
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan, Withheld
from framework.values.pool import Freedom, PoolView, Resident
from framework.values.reason import Refused
from framework.values.request import ModelRequest

# Each takes some milliseconds of a thread; an edit of the defaults may change hundreds.
MOST_PLANNED = 16
MOST_FREEDOM: Freedom = "offloaded"


class Plans(Protocol):
    """Makes plans for devices as they are, or will be."""

    async def prepare(self, request: ModelRequest, replica: int, *, withheld: Withheld) -> Prepared:
        """All that a plan depends on save what is free. Raises Refused."""
        ...

    async def look(self, prepared: Prepared) -> DeviceList:
        """The devices of a launch as they are listed now."""
        ...

    def place(
        self,
        prepared: Prepared,
        devices: Sequence[Device],
        residents: Sequence[Resident] = (),
        *,
        freedom: Freedom,
    ) -> LaunchPlan:
        """The plan beside `residents`. Raises Refused. Takes milliseconds."""
        ...


class Seen(Protocol):
    """What runs, as the fleet shows it."""

    def views(self) -> tuple[ModelView, ...]:
        """All models."""

    def pools(self) -> tuple[PoolView, ...]:
        """All pools, with who is on them."""

    def withheld(self, model_id: str) -> Withheld:
        """What a start of this model goes without for now."""


@dataclass(frozen=True)
class Ends:
    """Who is there after the apply: those that stay, and those whose memory comes back."""

    staying: tuple[Resident, ...]
    leaving: tuple[Resident, ...]

    def devices(self, listed: Sequence[Device]) -> tuple[Device, ...]:
        """As they will be listed."""
        freed: Counter[str] = Counter()
        for resident in self.leaving:
            if resident.holding != "promised":
                freed.update(resident.bytes)
        return after_return(listed, freed)


async def outlook(
    manifest: Manifest, actions: Sequence[ModelAction], fleet: Seen, planner: Plans, known: Sequence[Device]
) -> Outlook:
    """Devices and changed models before and after an apply. `known` are all devices, as last listed."""
    views = {view.request.id: view for view in fleet.views()}
    before = {name: _running(view) for name, view in views.items()}
    ends = ends_of(fleet, {action.model for action in actions if action.kind in ("stop", "replace")})
    moving = [action for action in actions if action.kind in ("start", "replace", "record")]
    planned = [action for action in moving if _is_planned(action, manifest)]
    # What the apply starts comes first: it takes what others find taken.
    planned.sort(key=lambda action: action.kind == "record")
    models, residents = [], list(ends.staying)
    for action in planned[:MOST_PLANNED]:
        found = await _model(action, manifest.models[action.model], views, planner, fleet, ends, residents)
        models.append(found)
        if found.runs and isinstance(found.after, LaunchPlan):
            residents.append(_promised(found.after))
    after = _after(actions, manifest, before, models)
    return Outlook(_devices(known, before, after), tuple(models), max(0, len(planned) - MOST_PLANNED))


def _is_planned(action: ModelAction, manifest: Manifest) -> bool:
    """Whether memory may be another one: something of the launch changed, or it is new."""
    return action.model in manifest.models and any(change.effect != "live" for change in action.changes)


def ends_of(fleet: Seen, going: Collection[str]) -> Ends:
    """Who is there once these models have ended."""
    residents = [one for pool in fleet.pools() for one in pool.residents]
    return Ends(
        tuple(one for one in residents if one.model not in going),
        tuple(one for one in residents if one.model in going),
    )


async def _model(
    action: ModelAction,
    request: ModelRequest,
    views: Mapping[str, ModelView],
    planner: Plans,
    fleet: Seen,
    ends: Ends,
    residents: Sequence[Resident],
) -> ModelOutlook:
    view = views.get(action.model)
    running = None if view is None else next(iter(_running(view)), None)
    others = [one for one in residents if one.model != action.model]
    before: LaunchPlan | RefusedInstance | None = running
    around = Ends(tuple(others), ends.leaving)
    if before is None and view is not None and not view.removed:
        before = await plan_of(view.request, planner, fleet, around)
    after = await plan_of(request, planner, fleet, around)
    runs = action.kind in ("start", "replace")
    return ModelOutlook(action.model, before, after, runs=runs, ran=running is not None)


async def plan_of(
    request: ModelRequest, planner: Plans, fleet: Seen, ends: Ends
) -> LaunchPlan | RefusedInstance:
    """The plan of a first replica beside those that stay."""
    try:
        prepared = await planner.prepare(request, 0, withheld=fleet.withheld(request.id))
        listed = await planner.look(prepared)
        # A model of some hundred layers takes tens of milliseconds.
        return await asyncio.to_thread(
            planner.place, prepared, ends.devices(listed.devices), ends.staying, freedom=MOST_FREEDOM
        )
    except Refused as refusal:
        return RefusedInstance(request, 0, refusal.failure)


def _running(view: ModelView) -> tuple[LaunchPlan, ...]:
    """The plans of what has a process."""
    alive: list[InstanceView] = [one for one in view.instances if one.pid is not None]
    return tuple(one.plan for one in alive if one.plan is not None)


def _promised(plan: LaunchPlan) -> Resident:
    request, placement = plan.request, plan.placement
    return Resident(
        f"{request.id}.{plan.replica}",
        request.id,
        plan.replica,
        request.pool.name,
        "promised",
        placement.needs_bytes,
        grows=placement.grows_bytes,
        mapped=placement.mapped_bytes,
    )


def _after(
    actions: Iterable[ModelAction],
    manifest: Manifest,
    before: Mapping[str, tuple[LaunchPlan, ...]],
    models: Iterable[ModelOutlook],
) -> dict[str, tuple[LaunchPlan, ...]]:
    """The plans of what will have a process."""
    found, planned = dict(before), {model.model: model.after for model in models if model.runs}
    for action in actions:
        plans = found.get(action.model, ())
        if action.kind == "stop":
            found[action.model] = ()
            continue
        request = manifest.models.get(action.model)
        copies = len(plans) or 1
        if action.kind == "start" or any(change.field == "replicas" for change in action.changes):
            copies = request.live.replicas if request is not None else copies
        if action.model in planned:
            plan = planned[action.model]
            found[action.model] = (plan,) * copies if isinstance(plan, LaunchPlan) else ()
        elif action.kind == "live" and plans:
            found[action.model] = (plans * copies)[:copies]
    return found


def _devices(
    known: Iterable[Device],
    before: Mapping[str, tuple[LaunchPlan, ...]],
    after: Mapping[str, tuple[LaunchPlan, ...]],
) -> tuple[DeviceOutlook, ...]:
    was, will = _sums(before), _sums(after)
    return tuple(
        DeviceOutlook(device.name, device.pool, device.total_bytes, was[device.name], will[device.name])
        for device in known
    )


def _sums(plans: Mapping[str, tuple[LaunchPlan, ...]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for some in plans.values():
        for plan in some:
            found.update(plan.placement.counted_bytes)
    return found
