"""What of a device is left for one more launch (03 §9.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.planning.memory.budget import budgets
from framework.planning.placement.room import emptied, room_for
from framework.values.device import Device
from framework.values.pool import Resident
from framework.values.request import PoolLimits

MIB, GIB = 1 << 20, 1 << 30
CARD = Device("CUDA0", "gpu", 24 * GIB, 20 * GIB)
REMOTE = Device("RPC0", "rpc", 8 * GIB, 8 * GIB, endpoint="a:1")
HOST = Device("CPU", "cpu", 64 * GIB, 50 * GIB)
ALL = PoolLimits(fill=1.0)


def usable(
    device: Device, pool: PoolLimits = ALL, *residents: Resident, ceilings: dict[str, int] | None = None
) -> int:
    gpus = () if device.kind == "cpu" else (device,)
    hardware = room_for(gpus, (*gpus, HOST), pool, residents, ceilings)
    return budgets(hardware)[device.name]


def resident(device: str, gib: int, **fields: Any) -> Resident:
    values: dict[str, Any] = {"holding": "resident", "pool": "default"} | fields
    return Resident("other.0.1", "other", 0, bytes={device: gib * GIB}, **values)


def test_what_a_device_lists_as_free_may_be_used() -> None:
    assert usable(CARD) == 20 * GIB


def test_fill_keeps_its_share_of_the_whole_free() -> None:
    assert usable(CARD, PoolLimits(fill=0.5)) == 8 * GIB


def test_what_was_promised_is_not_free_any_more() -> None:
    assert usable(CARD, ALL, resident("CUDA0", 5, holding="promised")) == 15 * GIB


def test_what_a_resident_holds_is_listed_already() -> None:
    assert usable(CARD, ALL, resident("CUDA0", 3)) == 20 * GIB


def test_a_device_that_always_lists_everything_as_free_is_not_believed() -> None:
    device = Device("Vulkan0", "gpu", 8 * GIB, 8 * GIB)
    assert usable(device, ALL, resident("Vulkan0", 3)) == 5 * GIB


def test_a_server_that_somebody_uses_has_nothing_left() -> None:
    assert usable(REMOTE) == 8 * GIB
    assert usable(REMOTE, ALL, resident("RPC0", 1)) == 0  # MN-08


def test_so_has_every_device_of_that_server() -> None:
    sibling = Device("RPC1", "rpc", 8 * GIB, 8 * GIB, endpoint="a:1")
    stranger = Device("RPC2", "rpc", 8 * GIB, 8 * GIB, endpoint="b:1")
    listed = (REMOTE, sibling, stranger, HOST)
    found = budgets(room_for((sibling, stranger), listed, ALL, [resident("RPC0", 1)]))
    assert (found["RPC1"], found["RPC2"]) == (0, 8 * GIB)


def test_a_budget_is_for_all_of_ours_together() -> None:
    pool = PoolLimits(fill=1.0, budget_bytes=10 * GIB)
    assert usable(CARD, pool) == 10 * GIB
    assert usable(CARD, pool, resident("CUDA0", 4)) == 6 * GIB


def test_a_budget_lowers_the_total_that_fill_is_a_share_of() -> None:
    assert usable(CARD, PoolLimits(fill=0.5, budget_bytes=10 * GIB)) == 5 * GIB


def test_a_reserve_stays_free_besides() -> None:
    assert usable(CARD, PoolLimits(fill=1.0, reserve_bytes=GIB)) == 19 * GIB


def test_a_ceiling_is_the_most_whatever_is_free() -> None:
    assert usable(CARD, ALL, ceilings={"CUDA0": GIB}) == GIB


def test_host_memory_of_a_pool_of_gpus_has_no_budget() -> None:
    pool = PoolLimits(fill=1.0, budget_bytes=GIB, reserve_bytes=GIB)
    assert budgets(room_for((CARD,), (CARD, HOST), pool))["CPU"] == 50 * GIB


def test_host_memory_of_its_own_pool_has() -> None:
    pool = PoolLimits("ram", ("cpu",), budget_bytes=8 * GIB, reserve_bytes=GIB)
    assert usable(HOST, pool) == 7 * GIB


def test_a_budget_of_host_memory_is_for_its_own_pool() -> None:
    pool = PoolLimits("ram", ("cpu",), budget_bytes=8 * GIB)
    assert usable(HOST, pool, resident("CPU", 2, pool="gpus"), resident("CPU", 3, pool="ram")) == 5 * GIB


def test_pages_of_files_count_against_a_written_budget() -> None:
    pool = PoolLimits("ram", ("cpu",), budget_bytes=8 * GIB)
    other = resident("CPU", 1, pool="ram", mapped={"CPU": 3 * GIB})
    assert room_for((), (HOST,), pool, [other]).mapped_limit_bytes == 4 * GIB


def test_without_a_budget_pages_count_beside_those_of_others() -> None:
    pool = PoolLimits("ram", ("cpu",))
    other = resident("CPU", 1, pool="ram", mapped={"CPU": 3 * GIB})
    assert room_for((), (HOST,), pool, [other]).mapped_limit_bytes == 60 * GIB
    assert room_for((), (HOST,), pool).mapped_limit_bytes is None


def test_unified_memory_is_limited_by_what_the_host_has_free() -> None:
    shared = Device("CUDA0", "gpu", 124 * GIB, 109 * GIB, is_unified=True)
    hardware = room_for((shared,), (shared, HOST), ALL)
    assert budgets(hardware)["CUDA0"] == 50 * GIB  # GP-04, FM-24
    assert hardware.unified == {"CUDA0"}


LAVAPIPE = Device("Vulkan0", "gpu", 16 * GIB, 16 * GIB, "llvmpipe", is_unified=True)
SMALL_HOST = Device("CPU", "cpu", 16 * GIB, 16 * GIB)


@pytest.mark.parametrize("where", ["Vulkan0", "CPU"])
@pytest.mark.parametrize(
    ("holding", "free_gib"), [("promised", 16), ("resident", 4)], ids=["promised", "resident"]
)
def test_shared_memory_is_taken_once_for_everybody(where: str, holding: str, free_gib: int) -> None:
    host = replace(SMALL_HOST, free_bytes=free_gib * GIB)
    listed, other = (LAVAPIPE, host), resident(where, 12, holding=holding)
    assert budgets(room_for((LAVAPIPE,), listed, ALL, [other]))["Vulkan0"] == 4 * GIB
    assert budgets(room_for((), listed, PoolLimits("c", ("cpu",)), [other]))["CPU"] == 4 * GIB


def test_two_devices_in_the_hosts_memory_share_it() -> None:
    second = replace(LAVAPIPE, name="Vulkan1")
    found = room_for((second,), (LAVAPIPE, second, SMALL_HOST), ALL, [resident("Vulkan0", 12)])
    assert budgets(found)["Vulkan1"] == 4 * GIB


def test_memory_of_its_own_is_not() -> None:
    own = Device("CUDA0", "gpu", 40 * GIB, 31 * GIB)
    low = Device("CPU", "cpu", 64 * GIB, 14 * GIB)
    assert budgets(room_for((own,), (own, low), ALL))["CUDA0"] == 31 * GIB  # FM-24


def test_emptied_devices_are_all_free() -> None:
    assert emptied(room_for((CARD,), (CARD, HOST), ALL)).gpus[0].free_bytes == 24 * GIB
