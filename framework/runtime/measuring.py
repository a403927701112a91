"""Measure launches with their own engine, and give plans what was measured before. Called by runtime.planner.

A fresh answer is filed under the files, the engine and the settings of its launch; the next plan of the same
launch, also that of a start, finds it there and is exact without a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from framework.engines.dry_run import NotMeasured, measure
from framework.planning.launch_measured import by_outside_names, still_holds, with_measurement
from framework.runtime.measurements import Measurements, measurement_key
from framework.values.device import Device
from framework.values.engine import FileId
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason

# More launches than anybody measures at once.
MOST_FAILURES = 256


class Measuring:
    """One measurement at a time: each takes a processor, and wants the devices as they are."""

    def __init__(self, known: Measurements) -> None:
        self._known = known
        self._failed: dict[str, Reason] = {}
        self._turn = asyncio.Lock()

    def recall(
        self, plan: LaunchPlan, files: Sequence[FileId], devices: Sequence[Device]
    ) -> LaunchPlan | None:
        """The plan as it was measured before; None where it was not, or would come out otherwise now.

        `files` are all that the launch loads, `devices` all that its engine lists. Blocking.
        """
        measured = self._known.find(measurement_key(plan, files, devices))
        if measured is None:
            return None
        measured = by_outside_names(measured, plan.placement.child_names)
        return with_measurement(plan, measured) if still_holds(plan, measured, devices) else None

    async def measure(
        self, plan: LaunchPlan, files: Sequence[FileId], devices: Sequence[Device], *, anew: bool = True
    ) -> LaunchPlan:
        """The plan as its engine measures it now; where that is not possible, as it is, with the reason.

        Without `anew` an engine that failed on the same launch before, in this process, is not asked again.
        """
        key = measurement_key(plan, files, devices)
        if not anew and (failed := self._failed.get(key)):
            return replace(plan, reasons=(*plan.reasons, failed))
        try:
            async with self._turn:
                measured = await measure(plan, listed=_shown(plan, devices))
        except NotMeasured as refusal:
            self._remember(key, refusal.reason)
            return replace(plan, reasons=(*plan.reasons, refusal.reason))
        self._failed.pop(key, None)
        await asyncio.to_thread(self._known.keep, key, measured)
        return with_measurement(plan, by_outside_names(measured, plan.placement.child_names))

    def _remember(self, key: str, failed: Reason) -> None:
        if len(self._failed) >= MOST_FAILURES:
            self._failed.clear()
        self._failed[key] = failed


def _shown(plan: LaunchPlan, devices: Sequence[Device]) -> list[str]:
    """What the engine calls the devices that it is shown; all that it lists where its line names none."""
    names = plan.placement.child_names
    return list(names.values()) if names else [device.name for device in devices]
