"""Pools as JSON: what each device has, who holds it, who waits and for what (13 §5)."""

from __future__ import annotations

from typing import Any

from framework.api.shapes.basic import reason_json
from framework.values.pool import DeviceUse, PoolView, Resident, WaitingView


def pool_json(pool: PoolView) -> dict[str, Any]:
    """One pool. What nobody can tell is null, never a guess."""
    limits, foreign = pool.limits, [device.foreign_bytes for device in pool.devices]
    order = {instance: place for place, instance in enumerate(pool.next_to_leave, 1)}
    return {
        "name": limits.name,
        "limits": {
            "devices": list(limits.devices),
            "fill": limits.fill,
            "budget_bytes": limits.budget_bytes,
            "reserve_bytes": limits.reserve_bytes,
            "evict": limits.evict,
            "offload": limits.offload,
        },
        "devices": [_device_json(device) for device in pool.devices],
        "foreign_bytes": None if None in foreign or not foreign else sum(filter(None, foreign)),
        "residents": [_resident_json(one, order.get(one.instance)) for one in pool.residents],
        "waiting": [_waiting_json(one) for one in pool.waiting],
        "evictions": pool.evictions,
    }


def _device_json(device: DeviceUse) -> dict[str, Any]:
    """One device of a pool."""
    return {
        "name": device.name,
        "kind": device.kind,
        "total_bytes": device.total_bytes,
        "free_bytes": device.free_bytes,
        "usable_bytes": device.usable_bytes,
        "planned_bytes": device.planned_bytes,
        "promised_bytes": device.promised_bytes,
        "measured_bytes": device.measured_bytes,
        "foreign_bytes": device.foreign_bytes,
        "utilisation": device.utilisation,
    }


def _waiting_json(waiting: WaitingView) -> dict[str, Any]:
    """A replica that waits for memory."""
    return {
        "model": waiting.model,
        "replica": waiting.replica,
        "position": waiting.position,
        "requests": waiting.requests,
        "waited_s": waiting.waited_s,
        "eta_s": waiting.eta_s,
        "reason": reason_json(waiting.reason),
    }


def _resident_json(resident: Resident, place: int | None) -> dict[str, Any]:
    """`eviction_order`: its place among those that would make room, from 1, and `yields_to` the lowest
    priority that it would do so for; both null for one that stays."""
    serves = resident.holding == "resident" and resident.leases == 0
    return {
        "model": resident.model,
        "replica": resident.replica,
        "instance": resident.instance,
        "holding": resident.holding,
        "planned_bytes": resident.total_bytes,
        "bytes": dict(resident.bytes),
        "mapped_bytes": dict(resident.mapped),
        "grows_bytes": dict(resident.grows),
        "inflight": resident.leases,
        "idle_s": resident.idle_s if serves else None,
        "priority": resident.priority,
        "pinned": resident.pinned,
        "load": resident.load,
        "next_to_evict": place == 1,
        "yields_to": None if place is None else resident.yields_to,
        "eviction_order": place,
    }
