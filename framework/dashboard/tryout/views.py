"""The models of the page Try at this moment: which were chosen, what they can, how they are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from framework.api.services import Services
from framework.dashboard.tryout.lanes import (
    LOADED,
    Ability,
    Lane,
    ability_of,
    lane_fragment,
    lane_of,
    lane_state,
)
from framework.dashboard.updates import Fragment
from framework.proxy.access import may_use
from framework.values.instance import ModelView
from framework.values.manifest import AccessKey

FIELDS = ("model", "with")


@dataclass(frozen=True)
class Chosen:
    """The models of the lanes, in order; `names` are the fields as they are shown, `faults` the names that
    nobody may use."""

    views: tuple[ModelView, ...]
    names: tuple[str, str]
    faults: tuple[str, ...] = ()


def usable_models(services: Services, key: AccessKey | None) -> tuple[ModelView, ...]:
    """What a key may use, in declared order."""
    views = services.fleet.views()
    return tuple(view for view in views if not view.removed and may_use(key, view.request))


def choose(services: Services, key: AccessKey | None, fields: Mapping[str, str]) -> Chosen:
    """The models that `fields` name by id or alias. Without a first one: what is loaded, else the first."""
    usable = {view.request.id: view for view in usable_models(services, key)}
    first, second = (fields.get(name, "").strip() for name in FIELDS)
    if not first and usable:
        ready = (name for name, view in usable.items() if view.state in LOADED)
        first = next(ready, next(iter(usable)))
    views: list[ModelView] = []
    faults: list[str] = []
    shown: list[str] = []
    for name in (first, second):
        view = usable.get(services.fleet.resolve(name) or name)
        shown.append(view.request.id if view is not None else name)
        if view is not None:
            views.append(view)
        elif name:
            faults.append(name)
    return Chosen(tuple(views), (shown[0], shown[1]), tuple(faults))


async def lanes_now(services: Services, chosen: Chosen, efforts: tuple[str, str]) -> tuple[Lane, ...]:
    """The lanes as they are now. Reads the headers of files that nobody has looked into yet."""
    abilities = await asyncio.gather(*(ability_now(services, view) for view in chosen.views))
    pools = services.fleet.pools()
    return tuple(
        lane_of(number, view, ability, efforts[number], lane_state(number, view, pools))
        for number, (view, ability) in enumerate(zip(chosen.views, abilities, strict=True))
    )


async def ability_now(services: Services, view: ModelView) -> Ability:
    """What a model can be asked."""
    return ability_of(view.request, await services.files.header_of(view.request))


def views_now(services: Services, chosen: Chosen) -> tuple[ModelView, ...]:
    """The chosen models that are still there, as they are now."""
    found = (services.fleet.view(view.request.id) for view in chosen.views)
    return tuple(view for view in found if view is not None)


def lane_fragments(services: Services, chosen: Chosen) -> tuple[Fragment, ...]:
    """What of the lanes changes by itself. A model that is gone keeps its place: lanes are counted."""
    pools = services.fleet.pools()
    kept = (services.fleet.view(view.request.id) or view for view in chosen.views)
    return tuple(lane_fragment(lane_state(number, view, pools)) for number, view in enumerate(kept))
