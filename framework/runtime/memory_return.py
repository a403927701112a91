"""Device lists to decide by: after a process ended, its memory has to show as free first (04 §5).

Drivers free a dead process's memory late; a list taken at once would make the next start too small. Called by
runtime.admission before each decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from framework.hardware.device_cache import FRESH_S
from framework.hardware.devices import DeviceList
from framework.hardware.settle import (
    INTERVAL_S,
    LONGEST_S,
    expected_free,
    is_settled,
    missing_bytes,
    settled,
)
from framework.runtime.ledger import Ledger
from framework.telemetry.events import EventLog
from framework.values.device import Device
from framework.values.reason import Reason
from framework.values.units_text import size

WINDOW_S = 15.0
# Older lists say nothing about what was free just before an end.
LISTED_BEFORE_S = 5.0


class MemoryReturn:
    """Waits for memory that ended processes held. Belongs to one event loop."""

    def __init__(self, ledger: Ledger, events: EventLog) -> None:
        self._ledger = ledger
        self._events = events
        self._listed: dict[str, tuple[Device, float]] = {}
        """Every device as it was listed last, and when."""

    async def devices(self, look: Callable[..., Awaitable[DeviceList]]) -> Sequence[Device]:
        """The devices as they are now, after a wait where something has just ended; 2 s at most."""
        found = await self._look(look, fresh=self._must_be_fresh())
        recent = [device for device in found if device.name in self._recent()]
        if not recent:
            return self._seen(found)
        expected, began = self._expected(recent), self._ledger.clock()
        before: Sequence[Device] = ()
        while not _is_back(found, before, recent, expected):
            left_s = began + LONGEST_S - self._ledger.clock()
            if left_s <= 0:
                self._tell(missing_bytes(found, expected))
                break
            await asyncio.sleep(min(INTERVAL_S, left_s))
            before, found = found, await self._look(look, fresh=True)
        for device in recent:
            self._ledger.returned.pop(device.name, None)
        return self._seen(found)

    async def _look(self, look: Callable[..., Awaitable[DeviceList]], *, fresh: bool) -> Sequence[Device]:
        return (await look(fresh=fresh)).devices

    def _seen(self, found: Sequence[Device]) -> Sequence[Device]:
        now = self._ledger.clock()
        self._listed |= {device.name: (device, now) for device in found}
        return found

    def _must_be_fresh(self) -> bool:
        """Whether a list of a moment ago may be from before something was loaded or ended."""
        return bool(self._recent()) or self._ledger.clock() - self._ledger.loaded_s <= FRESH_S

    def _recent(self) -> frozenset[str]:
        now = self._ledger.clock()
        return frozenset(name for name, last in self._ledger.returned.items() if now - last.at_s <= WINDOW_S)

    def _expected(self, recent: Sequence[Device]) -> dict[str, int]:
        """What they will list when all is back, where they were listed shortly before the end."""
        lists, freed = [], {}
        for name in (device.name for device in recent):
            last = self._ledger.returned.get(name)
            before, at_s = self._listed.get(name, (None, 0.0))
            if before is not None and last is not None and 0 <= last.at_s - at_s <= LISTED_BEFORE_S:
                lists.append(before)
                freed[name] = last.bytes
        return expected_free(lists, freed)

    def _tell(self, missing: Mapping[str, int]) -> None:
        if not missing:
            return
        parts = " and ".join(f"{size(gap)} of {name}" for name, gap in missing.items())
        reason = Reason(
            "memory_not_released",
            f"{LONGEST_S:g} s after a model was unloaded, {parts} still show as used.",
            "The next start is planned with what is free; look for processes that hold the device.",
            "warning",
            {"missing_bytes": dict(missing)},
        )
        self._events.record("memory", reason.message, reason=reason)


def _is_back(
    now: Sequence[Device], before: Sequence[Device], recent: Sequence[Device], expected: Mapping[str, int]
) -> bool:
    """Whether everything expected is there; where nothing was expected, whether it stopped changing."""
    if not settled(now, expected):
        return False
    names = {device.name for device in recent if device.name not in expected and device.kind != "cpu"}
    others = [device for device in now if device.name in names]
    return not others or (bool(before) and is_settled(before, others))
