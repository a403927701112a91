"""Questions about the running manager that need facts: check, diff, plan, engines, devices, doctor (13 §8).

Made by app for the API and the dashboard. Answers with the functions that the local commands use, on the
manifest in force, or on a text that somebody thinks of applying.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from framework.api.answers import DevicesAnswer, DiffAnswer, DoctorCheck, EngineAnswer, PlanAnswer, WayAnswer
from framework.api.device_sample import DeviceSample
from framework.api.doctor import Surroundings, examine
from framework.api.facts import as_running, list_all_devices, list_engines, plan_all, preview
from framework.api.outlook import outlook
from framework.api.services import FleetView
from framework.api.ways import ways_of
from framework.editing.editor import LoadText
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.manifest.load import Loaded
from framework.reconcile.accidents import without_accidents
from framework.reconcile.current import CurrentManifest
from framework.runtime.shop import Planner
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan, Withheld
from framework.values.pool import Resident
from framework.values.request import ModelRequest

LOOK_AT_POOLS_S = 1.0


class PlanningFleet(FleetView, Protocol):
    """The fleet, with what a plan has to know of it besides."""

    def withheld(self, model_id: str) -> Withheld:
        """What a start of this model goes without for now."""


@dataclass(frozen=True)
class _Beside:
    """Plans launches as the manager starts them now: beside what runs, and without what it withholds.

    What holds the place of a launch already is not in its way.
    """

    planner: Planner
    fleet: PlanningFleet
    residents: tuple[Resident, ...]

    async def plan(self, request: ModelRequest, replica: int) -> LaunchPlan:
        others = [one for one in self.residents if (one.model, one.replica) != (request.id, replica)]
        withheld = self.fleet.withheld(request.id)
        return await self.planner.plan(request, replica, residents=others, withheld=withheld)


class Inquiry:
    """Answers questions; keeps the sample of devices that all readers share."""

    def __init__(
        self,
        current: CurrentManifest,
        load: LoadText,
        notices: Callable[[Manifest], tuple[str, ...]],
        fleet: PlanningFleet,
        planner: Planner,
        probes: CapabilityCache,
        environ: Mapping[str, str],
        state_dir: Path,
        devices: DeviceCache,
    ) -> None:
        self._current = current
        self._load = load
        self._notices = notices
        self._fleet = fleet
        self._planner = planner
        self._probes = probes
        self._environ = environ
        self._state_dir = state_dir
        self._sample = DeviceSample(
            current, lambda: list_all_devices(current.manifest, environ, devices.get_anew)
        )

    async def run(self) -> None:
        """List the devices at the start, and when the pools have changed, so that pages have them."""
        while True:
            pools = self._current.manifest.pools
            await self.devices()
            while self._current.manifest.pools == pools:
                await asyncio.sleep(LOOK_AT_POOLS_S)

    async def check(self, text: str | None, file: str | None = None) -> Loaded:
        """Check a manifest text, or the files as they are now. `file` is what the text is of."""
        loaded = await asyncio.to_thread(self._load, text, file)
        return without_accidents(loaded, self._current.manifest)

    async def diff(self, text: str | None, file: str | None = None) -> DiffAnswer:
        """What applying a text, or the files as they are now, would do."""
        loaded = await self.check(text, file)
        answer = preview(loaded, self._fleet.views())
        if loaded.manifest is None:
            return answer
        known = await self._known_devices()
        memory = await outlook(loaded.manifest, answer.actions, self._fleet, self._planner, known.devices)
        return replace(answer, notices=self._notices(loaded.manifest), memory=memory)

    async def ways(self, model_id: str) -> tuple[WayAnswer, ...]:
        """What could be changed about the reasons of a model, each as the planner sees it."""
        return await ways_of(model_id, self.check, self._fleet, self._planner)

    async def plan(self) -> PlanAnswer:
        """The plan of every declared replica; starts no model."""
        devices = await self._known_devices()
        residents = tuple(one for pool in self._fleet.pools() for one in pool.residents)
        beside = _Beside(self._planner, self._fleet, residents)
        answer = await plan_all(self._current.manifest, beside, devices)
        return as_running(answer, self._fleet.views())

    async def _known_devices(self) -> DevicesAnswer:
        known = self._sample.known()
        return known if known.devices else await self.devices()

    async def engines(self) -> tuple[EngineAnswer, ...]:
        """What was found for each engine table."""
        return await list_engines(self._current.manifest, self._environ, self._probes)

    async def devices(self) -> DevicesAnswer:
        """The devices as the engines list them now."""
        return await self._sample.take()

    def known_devices(self) -> DevicesAnswer:
        """The devices as last listed; starts nothing."""
        return self._sample.known()

    async def doctor(self) -> tuple[DoctorCheck, ...]:
        """All checks, on the file as it is now."""
        around = Surroundings(self._state_dir, None, None)
        return await examine(await self.check(None), self._environ, self._probes, around, self._sample.take)
