"""What could be changed about the reasons of a model, each edit tried on the planner (MD-11).

Called by inquiry for pages and API. Reads the manifest as it is on disk; writes nothing, starts no model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from framework.api.answers import RefusedInstance, WayAnswer
from framework.api.outlook import Plans, Seen, ends_of, plan_of
from framework.api.told import told_of
from framework.editing.documents import files_of
from framework.editing.placing import EditedFile, with_way
from framework.manifest.edit import EditImpossible
from framework.manifest.load import Loaded
from framework.planning.reason_edits import ways_for
from framework.values.instance import ModelView
from framework.values.manifest_edit import Way
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.request import ModelRequest

# Each is one reading of the manifest and one plan.
MOST_WAYS = 8
Check = Callable[[str | None, str | None], Awaitable[Loaded]]


@dataclass(frozen=True)
class _Asked:
    """A model with what is told of it now."""

    request: ModelRequest
    plan: LaunchPlan | RefusedInstance
    reasons: tuple[Reason, ...]


async def ways_of(model_id: str, check: Check, fleet: Seen, planner: Plans) -> tuple[WayAnswer, ...]:
    """Every way that the reasons of a model offer, mildest first, each once; none for an unknown model."""
    view = next((one for one in fleet.views() if one.request.id == model_id), None)
    on_disk = await check(None, None)
    if view is None or on_disk.manifest is None or model_id not in on_disk.manifest.models:
        return ()
    asked = await _asked(on_disk.manifest.models[model_id], view, fleet, planner)
    files, found = files_of(on_disk), []
    for code, way in _ways(asked):
        try:
            edited = with_way(files, model_id, way)
        except EditImpossible:
            continue
        if edited.text != edited.file.text:
            found.append(await _tried(code, way, edited, asked, check, fleet, planner))
    return tuple(found)


async def _asked(request: ModelRequest, view: ModelView, fleet: Seen, planner: Plans) -> _Asked:
    """What it would start with now, with the reasons of what runs and of that plan."""
    plan = await plan_of(request, planner, fleet, ends_of(fleet, {request.id}))
    told = [reason for instance in view.instances for reason in told_of(instance)]
    told += [plan.failure.reason] if isinstance(plan, RefusedInstance) else [*plan.reasons, *plan.spec.notes]
    return _Asked(request, plan, tuple({reason.code: reason for reason in told}.values()))


def _ways(asked: _Asked) -> Iterator[tuple[str, Way]]:
    plan = asked.plan if isinstance(asked.plan, LaunchPlan) else None
    found: list[tuple[str, Way]] = []
    for reason in asked.reasons:
        new = (way for way in ways_for(reason, asked.request, plan) if way not in [one for _, one in found])
        found += [(reason.code, way) for way in new]
    yield from found[:MOST_WAYS]


async def _tried(
    code: str, way: Way, edited: EditedFile, asked: _Asked, check: Check, fleet: Seen, planner: Plans
) -> WayAnswer:
    loaded = await check(edited.text, edited.file.name)
    name, changes = edited.file.name, edited.changes
    if loaded.manifest is None:
        return WayAnswer(code, way, name, changes, asked.plan, None, loaded.problems)
    request = loaded.manifest.models[asked.request.id]
    after = await plan_of(request, planner, fleet, ends_of(fleet, {request.id}))
    return WayAnswer(code, way, name, changes, asked.plan, after)
