"""Pools to draw: one GPU pool with every kind of resident and a queue, one remote pool, one empty pool."""

from __future__ import annotations

from typing import Any

from framework.values.pool import DeviceUse, PoolView, Resident, WaitingView
from framework.values.reason import Reason
from framework.values.request import PoolLimits
from tests.dashboard.samples import GIB, MIB

WAITS = Reason(
    "waiting_for_memory",
    "It needs 9.0 GiB of CUDA0, and smollm2 (12 GiB, serving 2 requests) holds it.",
    'It starts when smollm2 has answered. Raise its priority, or set pin = false for "chat".',
    "info",
    {"needed_bytes": 9 * GIB},
)


def use(name: str = "CUDA0", **fields: Any) -> DeviceUse:
    """A GPU of 24 GiB."""
    values: dict[str, Any] = {
        "name": name,
        "kind": "gpu",
        "description": "NVIDIA GeForce RTX 4090",
        "total_bytes": 24 * GIB,
        "free_bytes": 7 * GIB,
        "usable_bytes": 20 * GIB,
        "planned_bytes": 13 * GIB,
        "promised_bytes": 4 * GIB,
        "measured_bytes": 12 * GIB,
        "foreign_bytes": 5 * GIB,
        "utilisation": 0.42,
    }
    return DeviceUse(**{**values, **fields})


def resident(model: str = "smollm2", **fields: Any) -> Resident:
    """An idle instance with 4 GiB."""
    values: dict[str, Any] = {
        "instance": f"{model}.0@1",
        "model": model,
        "replica": 0,
        "pool": "gpu",
        "holding": "resident",
        "bytes": {"CUDA0": 4 * GIB, "CPU": 300 * MIB},
        "idle_s": 42.0,
    }
    return Resident(**{**values, **fields})


def waiting(model: str = "big-one", **fields: Any) -> WaitingView:
    """A model that waits for memory."""
    values: dict[str, Any] = {
        "model": model,
        "replica": 0,
        "position": 1,
        "requests": 3,
        "waited_s": 4.2,
        "eta_s": 11.7,
        "reason": WAITS,
    }
    return WaitingView(**{**values, **fields})


def pool(**fields: Any) -> PoolView:
    """A pool without anybody."""
    values: dict[str, Any] = {
        "limits": PoolLimits("gpu", ("CUDA0", "CUDA1"), budget_bytes=20 * GIB),
        "devices": (use(),),
        "residents": (),
        "next_to_leave": (),
        "waiting": (),
        "evictions": 0,
    }
    return PoolView(**{**values, **fields})


def gpu_pool() -> PoolView:
    """Every kind of resident, and two that wait."""
    return pool(
        devices=(use(), use("CUDA1", measured_bytes=None, foreign_bytes=None, utilisation=None)),
        residents=(
            resident("smollm2", leases=2, idle_s=0.0, priority=5),
            resident("degraded"),
            resident("chat", pinned=True, replica=1, instance="chat.1@4"),
            resident("loading", holding="promised"),
            resident("old", holding="leaving"),
        ),
        next_to_leave=("degraded.0@1", "smollm2.0@1"),
        waiting=(waiting(), waiting("other", position=2, replica=1, requests=1, eta_s=None)),
        evictions=7,
    )


def remote_pool() -> PoolView:
    """One server, from which nobody leaves."""
    limits = PoolLimits("far", ("rpc://10.0.0.7:50052",), reserve_bytes=GIB, evict="never", offload="forbid")
    device = use(
        "RPC0",
        kind="rpc",
        description="10.0.0.7:50052",
        free_bytes=24 * GIB,
        usable_bytes=24 * GIB,
        planned_bytes=0,
        promised_bytes=0,
        measured_bytes=0,
        foreign_bytes=None,
        utilisation=None,
    )
    return pool(
        limits=limits, devices=(device,), residents=(resident("remote", pool="far", bytes={"RPC0": GIB}),)
    )


def host_pool(**fields: Any) -> PoolView:
    """A budget of 4 GiB on a host of 24 GiB, of which its model holds 1 GiB and others 8 GiB."""
    host = use(
        "CPU",
        kind="cpu",
        description="host memory",
        usable_bytes=3 * GIB,
        planned_bytes=9 * GIB,
        promised_bytes=0,
    )
    own = resident("night", pool="host", bytes={"CPU": GIB}, mapped={"CPU": GIB})
    limits = PoolLimits("host", ("cpu",), budget_bytes=4 * GIB)
    return pool(**{"limits": limits, "devices": (host,), "residents": (own,), **fields})


def all_pools() -> tuple[PoolView, ...]:
    """What a busy page shows."""
    return (gpu_pool(), remote_pool(), host_pool(), pool(limits=PoolLimits("empty", ("cpu",)), devices=()))
