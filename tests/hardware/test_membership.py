"""Which devices a pool has (01 §1.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.hardware.membership import in_pools, members, servers_of
from framework.values.device import Device
from framework.values.request import PoolLimits

SMALL = Device("CUDA0", "gpu", 6, 6, uuid="GPU-small", bus_id="0000:01:00.0")
BIG = Device("CUDA1", "gpu", 24, 24, uuid="GPU-big", bus_id="0000:41:00.0")
TWIN = Device("Vulkan0", "gpu", 24, 24, same_as="CUDA1")
REMOTE = Device("RPC0", "rpc", 9, 9, endpoint="box:50052")
HOST = Device("CPU", "cpu", 64, 32)
ALL = (REMOTE, SMALL, BIG, TWIN, HOST)


def pool(*devices: str, name: str = "pool") -> PoolLimits:
    return PoolLimits(name, devices)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(["auto"], ["CUDA0", "CUDA1"], id="all local GPUs, each card once"),
        pytest.param(["CUDA1"], ["CUDA1"], id="by name"),
        pytest.param(["GPU-big"], ["CUDA1"], id="by uuid"),
        pytest.param(["Vulkan0"], ["Vulkan0"], id="by its second name"),
        pytest.param(["rpc://box:50052"], ["RPC0"], id="by address"),
        pytest.param(["cpu"], ["CPU"], id="host memory"),
        pytest.param(
            ["CUDA1", "rpc://box:50052"], ["RPC0", "CUDA1"], id="several, as the engine orders them"
        ),
        pytest.param(["CUDA7", "rpc://other:1"], [], id="not there"),
        pytest.param(["auto", "rpc://box:50052"], ["RPC0", "CUDA0", "CUDA1"], id="local and remote"),
    ],
)
def test_members_of_a_pool(named: list[str], expected: list[str]) -> None:
    assert [device.name for device in members(ALL, pool(*named))] == expected


def test_without_gpus_an_automatic_pool_has_host_memory() -> None:
    assert members((REMOTE, HOST), pool("auto")) == (HOST,)


def test_a_pool_that_names_a_device_has_it_before_one_that_takes_all() -> None:
    pools = (pool("auto", name="rest"), pool("GPU-big", name="big"))
    placed = {device.name: device.pool for device in in_pools(ALL, pools)}
    assert placed == {"RPC0": None, "CUDA0": "rest", "CUDA1": "big", "Vulkan0": None, "CPU": None}


def test_a_device_that_no_pool_takes_belongs_to_none() -> None:
    (placed,) = in_pools((replace(BIG, pool="gone"),), (pool("cpu"),))
    assert placed.pool is None


def test_servers_are_counted_once_in_the_order_of_the_manifest() -> None:
    pools = (pool("rpc://b:1", "CUDA0"), pool("rpc://a:1", "rpc://b:1"))
    assert servers_of(pools) == ("b:1", "a:1")
