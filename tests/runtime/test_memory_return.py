"""The next start is planned with memory that is really back (04 §5)."""

from __future__ import annotations

from collections.abc import Sequence

from framework.hardware.devices import DeviceList
from framework.runtime.ledger import Ledger, Return
from framework.runtime.memory_return import MemoryReturn
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.device import Device

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


async def after_an_end(events: EventLog, *, before_mib: int, freed_mib: int) -> MemoryReturn:
    """A card was listed with so much in use; then a process ended that held so much of it."""
    ledger = Ledger()
    returning = MemoryReturn(ledger, events)
    await returning.devices(Driver([before_mib]).look)
    ledger.returned["CUDA0"] = Return(freed_mib * MIB, ledger.clock())
    return returning


async def test_memory_that_comes_back_late_is_waited_for() -> None:
    events = EventLog(Changes())
    returning = await after_an_end(events, before_mib=13_100, freed_mib=11_100)
    found = await returning.devices(Driver([13_100, 13_100, 13_100, 2_000]).look)
    assert found[0].free_bytes == 14_000 * MIB
    assert events.recent(kind="memory", limit=1) == []


async def test_memory_that_does_not_come_back_is_told_and_planned_without() -> None:
    events = EventLog(Changes())
    returning = await after_an_end(events, before_mib=13_100, freed_mib=11_100)
    found = await returning.devices(Driver([13_100]).look)
    assert found[0].free_bytes == (TOTAL_MIB - 13_100) * MIB
    told = events.recent(kind="memory", limit=1)[0]
    assert told.reason is not None
    assert told.reason.code == "memory_not_released"
    assert "CUDA0" in told.message


async def test_a_device_that_lists_all_as_free_is_not_waited_for() -> None:
    returning = await after_an_end(EventLog(Changes()), before_mib=0, freed_mib=500)
    driver = Driver([0])
    await returning.devices(driver.look)
    assert driver.looks == 1


async def test_a_look_at_other_devices_does_not_forget_what_is_expected() -> None:
    async def host_only(*, fresh: bool) -> DeviceList:
        return DeviceList((Device("CPU", "cpu", MIB, MIB),))

    returning = await after_an_end(EventLog(Changes()), before_mib=13_100, freed_mib=11_100)
    await returning.devices(host_only)
    found = await returning.devices(Driver([13_100, 2_000]).look)
    assert found[0].free_bytes == 14_000 * MIB


async def test_a_list_from_before_a_load_is_not_used_after_it() -> None:
    asked: list[bool] = []

    async def look(*, fresh: bool) -> DeviceList:
        asked.append(fresh)
        return DeviceList((card(0),))

    ledger = Ledger()
    returning = MemoryReturn(ledger, EventLog(Changes()))
    await returning.devices(look)
    ledger.loaded_s = ledger.clock()
    await returning.devices(look)
    assert asked == [False, True]


async def test_after_a_crash_free_memory_has_to_stand_still() -> None:
    ledger = Ledger()
    ledger.returned["CUDA0"] = Return(9_000 * MIB, ledger.clock())
    driver = Driver([12_000, 7_000, 2_000, 2_000])
    found = await MemoryReturn(ledger, EventLog(Changes())).devices(driver.look)
    assert found[0].free_bytes == 14_000 * MIB


async def test_without_an_end_the_list_may_be_a_moment_old() -> None:
    driver = Driver([5_000])
    found = await MemoryReturn(Ledger(), EventLog(Changes())).devices(driver.look)
    assert (driver.looks, found[0].name) == (1, "CUDA0")
