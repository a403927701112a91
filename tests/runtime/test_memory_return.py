"""The next start is planned with memory that is really back (04 §5)."""

from __future__ import annotations

from collections.abc import Sequence

from framework.hardware.devices import DeviceList
from framework.runtime.ledger import Ledger
from framework.runtime.memory_return import MemoryReturn
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.device import Device
from framework.values.pool import Resident

MIB = 1 << 20
TOTAL_MIB = 16_000


def card(used_mib: int) -> Device:
    return Device("CUDA0", "gpu", TOTAL_MIB * MIB, (TOTAL_MIB - used_mib) * MIB)


class Driver:
    """Lists one card after the other; the last one for ever."""

    def __init__(self, used_mib: Sequence[int]) -> None:
        self.used_mib = list(used_mib)
        self.looks = 0

    async def look(self, *, fresh: bool) -> DeviceList:
        self.looks += 1
        used = self.used_mib.pop(0) if len(self.used_mib) > 1 else self.used_mib[0]
        return DeviceList((card(used),))


def evicting(ledger: Ledger, events: EventLog) -> MemoryReturn:
    """A resident of 11,100 MiB was told to leave a card with 13,100 MiB in use, and has left."""
    returning = MemoryReturn(ledger, events)
    leaving = Resident("a.0@1", "a", 0, "gpu", "resident", {"CUDA0": 11_100 * MIB})
    returning.expect([card(13_100)], [leaving])
    ledger.returned_s["CUDA0"] = ledger.clock()
    return returning


async def test_memory_that_comes_back_late_is_waited_for() -> None:
    events = EventLog(Changes())
    driver = Driver([13_100, 13_100, 13_100, 2_000])
    found = await evicting(Ledger(), events).devices(driver.look)
    assert found[0].free_bytes == 14_000 * MIB
    assert events.recent(kind="memory", limit=1) == []


async def test_memory_that_does_not_come_back_is_told_and_planned_without() -> None:
    events = EventLog(Changes())
    found = await evicting(Ledger(), events).devices(Driver([13_100]).look)
    assert found[0].free_bytes == (TOTAL_MIB - 13_100) * MIB
    told = events.recent(kind="memory", limit=1)[0]
    assert told.reason is not None
    assert told.reason.code == "memory_not_released"
    assert "CUDA0" in told.message


async def test_a_device_that_lists_all_as_free_is_not_waited_for() -> None:
    ledger = Ledger()
    returning = MemoryReturn(ledger, EventLog(Changes()))
    leaving = Resident("a.0@1", "a", 0, "gpu", "resident", {"CUDA0": 500 * MIB})
    returning.expect([card(0)], [leaving])
    ledger.returned_s["CUDA0"] = ledger.clock()
    driver = Driver([0])
    await returning.devices(driver.look)
    assert driver.looks == 1


async def test_after_a_crash_free_memory_has_to_stand_still() -> None:
    ledger = Ledger()
    ledger.returned_s["CUDA0"] = ledger.clock()
    driver = Driver([12_000, 7_000, 2_000, 2_000])
    found = await MemoryReturn(ledger, EventLog(Changes())).devices(driver.look)
    assert found[0].free_bytes == 14_000 * MIB


async def test_without_an_end_the_list_may_be_a_moment_old() -> None:
    driver = Driver([5_000])
    found = await MemoryReturn(Ledger(), EventLog(Changes())).devices(driver.look)
    assert (driver.looks, found[0].name) == (1, "CUDA0")
