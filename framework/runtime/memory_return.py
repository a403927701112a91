"""Device lists to decide by: after a process ended, its memory has to show as free first (04 §5).

Drivers free a dead process's memory late; a list taken at once would make the next start too small. Called by
runtime.admission before each decision.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

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
from framework.values.pool import Resident
from framework.values.reason import Reason
from framework.values.units_text import size

WINDOW_S = 15.0


class MemoryReturn:
    """Waits for memory that ended processes held. Belongs to one event loop."""

    def __init__(self, ledger: Ledger, events: EventLog) -> None:
        self._ledger = ledger
        self._events = events
        self._expected: dict[str, int] = {}

    def expect(self, devices: Sequence[Device], leaving: Iterable[Resident]) -> None:
        """Residents were told to leave: what their devices will list as free when they are gone."""
        freed: Counter[str] = Counter()
        for resident in leaving:
            freed.update(resident.bytes)
        self._expected |= expected_free(devices, freed)

    async def devices(self, look: Callable[..., Awaitable[DeviceList]]) -> Sequence[Device]:
        """The devices as they are now, after a wait where something has just ended; 2 s at most."""
        recent = self._recent()
        found = (await look(fresh=bool(recent))).devices
        if not recent:
            return found
        began = self._ledger.clock()
        before: Sequence[Device] = ()
        while not self._is_back(found, before, recent):
            left_s = began + LONGEST_S - self._ledger.clock()
            if left_s <= 0:
                self._tell(found)
                break
            await asyncio.sleep(min(INTERVAL_S, left_s))
            before, found = found, (await look(fresh=True)).devices
        for name in recent:
            self._ledger.returned_s.pop(name, None)
            self._expected.pop(name, None)
        return found

    def _recent(self) -> frozenset[str]:
        now = self._ledger.clock()
        return frozenset(name for name, at in self._ledger.returned_s.items() if now - at <= WINDOW_S)

    def _is_back(self, now: Sequence[Device], before: Sequence[Device], recent: frozenset[str]) -> bool:
        """Whether everything expected is there; where nothing was expected, whether it stopped changing."""
        if not settled(now, self._expected):
            return False
        others = [device for device in now if device.name in recent and device.name not in self._expected]
        others = [device for device in others if device.kind != "cpu"]
        return not others or (bool(before) and is_settled(before, others))

    def _tell(self, found: Sequence[Device]) -> None:
        missing = missing_bytes(found, self._expected)
        if not missing:
            return
        parts = " and ".join(f"{size(bytes_)} of {name}" for name, bytes_ in missing.items())
        reason = Reason(
            "memory_not_released",
            f"{LONGEST_S:g} s after a model was unloaded, {parts} still show as used.",
            "The next start is planned with what is free; look for processes that hold the device.",
            "warning",
            {"missing_bytes": missing},
        )
        self._events.record("memory", reason.message, reason=reason)
