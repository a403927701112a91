"""Pools as readers see them: what each device has, what is planned, what is really used, who waits.

Called by runtime.fleet with what the ledger and the queues hold at this moment.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from framework.planning.memory.budget import usable_bytes
from framework.planning.pools.eviction import next_to_leave
from framework.runtime.seeker import Seeker
from framework.values.device import Device
from framework.values.pool import DeviceUse, PoolView, Resident, WaitingView
from framework.values.request import PoolLimits


@dataclass(frozen=True)
class Seen:
    """What our processes are seen to hold. An instance that is missing was not seen."""

    pids: frozenset[int]
    """Of engines, or of the wrappers that started them. Each leads a group of processes of its own."""
    allocated_bytes: Mapping[str, Mapping[str, int]]
    """By instance and device, as the engines said."""
    held_bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By instance and device, as the system said at the last look; comes first."""


def pool_view(
    limits: PoolLimits,
    devices: Iterable[Device],
    residents: Sequence[Resident],
    waiting: Sequence[WaitingView],
    seen: Seen,
    evictions: int,
) -> PoolView:
    """One pool. `devices` are its own, `residents` everybody's."""
    ours = tuple(resident for resident in residents if resident.pool == limits.name)
    return PoolView(
        limits=limits,
        devices=tuple(_use(device, limits, residents, seen) for device in devices),
        residents=ours,
        next_to_leave=next_to_leave(ours) if limits.evict == "idle" else (),
        waiting=tuple(waiting),
        evictions=evictions,
    )


def waiting_view(
    seeker: Seeker, position: int, *, requests: int, eta_s: float | None, now_s: float
) -> WaitingView:
    """A start that waits for memory, for `requests` of its model."""
    standing = seeker.standing
    if standing is None or standing.verdict is None:
        raise ValueError(f"{seeker.instance.name} does not wait")
    return WaitingView(
        model=seeker.instance.request.id,
        replica=seeker.instance.replica,
        position=position,
        requests=requests,
        waited_s=round(now_s - standing.since_s, 3),
        eta_s=eta_s,
        reason=standing.verdict,
    )


def _use(device: Device, limits: PoolLimits, residents: Sequence[Resident], seen: Seen) -> DeviceUse:
    sums: Counter[str] = Counter()
    for resident in residents:
        held = resident.bytes.get(device.name, 0)
        if device.kind == "cpu" and resident.pool == limits.name:
            held += resident.mapped.get(device.name, 0)  # pages of files take room as well
        sums["promised" if resident.holding == "promised" else "planned"] += held
    measured = _measured_bytes(device, residents, seen)
    return DeviceUse(
        name=device.name,
        kind=device.kind,
        description=device.description,
        total_bytes=device.total_bytes,
        free_bytes=device.free_bytes,
        usable_bytes=_usable_bytes(device, limits),
        planned_bytes=sums["planned"],
        promised_bytes=sums["promised"],
        measured_bytes=measured,
        foreign_bytes=_foreign_bytes(device, measured, seen),
        utilisation=device.utilisation,
    )


def _usable_bytes(device: Device, limits: PoolLimits) -> int:
    """What may be planned of the empty device (03 §9.4)."""
    most = device.total_bytes if limits.budget_bytes is None else min(device.total_bytes, limits.budget_bytes)
    if device.kind == "cpu":
        return max(0, most - limits.reserve_bytes)
    return usable_bytes(most, most, limits.fill, reserve=limits.reserve_bytes)


def _measured_bytes(device: Device, residents: Sequence[Resident], seen: Seen) -> int | None:
    """The driver's word, or the system's, where it has one, else the engines'; None where one did not say."""
    if device.used_by_pid:
        return sum(used for pid, used in device.used_by_pid.items() if _is_ours(pid, seen))
    holders = [r for r in residents if r.bytes.get(device.name)]
    sizes = [_held_bytes(r, device, seen) for r in holders]
    return sum(size for size in sizes if size is not None) if None not in sizes else None


def _held_bytes(holder: Resident, device: Device, seen: Seen) -> int | None:
    found = seen.held_bytes.get(holder.instance, {}).get(device.name)
    if found is not None:
        return found
    if holder.holding == "promised":
        # It has said nothing yet, and has taken next to nothing.
        return 0
    allocated = seen.allocated_bytes.get(holder.instance)
    return None if allocated is None else allocated.get(device.name, 0)


def _foreign_bytes(device: Device, measured: int | None, seen: Seen) -> int | None:
    """What is neither free nor ours. Devices that list everything as free all the time tell nothing."""
    if device.used_by_pid:
        return sum(used for pid, used in device.used_by_pid.items() if not _is_ours(pid, seen))
    if measured is None or not device.total_bytes or device.free_bytes >= device.total_bytes:
        return None
    return max(0, device.total_bytes - device.free_bytes - measured)


def _is_ours(pid: int, seen: Seen) -> bool:
    """Whether a process is an engine, or was started by a wrapper that was started in its place."""
    if pid in seen.pids:
        return True
    try:
        return os.getpgid(pid) in seen.pids
    except OSError:
        return False
