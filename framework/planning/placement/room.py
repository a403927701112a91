"""What of each device is left for one more launch (03 §9.4). Pure. Called before memory is planned.

A device does not always list what our own processes hold of it: a remote server reports everything as free.
So what is free is at most what it lists less what was promised to starts under way, and at most its total
less everything that our own plans say they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from framework.hardware.unified import fit_view, in_host_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import GpuBudget, Hardware
from framework.planning.placement.servers import taken_names
from framework.planning.pool_hardware import gpu_budget, host_of, is_host_pool
from framework.values.device import Device
from framework.values.device_words import AUTO
from framework.values.pool import Resident
from framework.values.request import PoolLimits


@dataclass(frozen=True)
class Holdings:
    """Bytes by device that our own instances hold, or were promised."""

    held: Mapping[str, int] = field(default_factory=dict)
    """Of all of them, `promised` among it."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """Of starts under way."""
    grows: Mapping[str, int] = field(default_factory=dict)
    """What they may come to hold besides."""
    mapped: Mapping[str, int] = field(default_factory=dict)
    """Pages of files that they read in place."""


NOTHING = Holdings()


def holdings(residents: Iterable[Resident]) -> Holdings:
    """The sums over residents."""
    held: Counter[str] = Counter()
    promised: Counter[str] = Counter()
    grows: Counter[str] = Counter()
    mapped: Counter[str] = Counter()
    for resident in residents:
        held.update(resident.bytes)
        grows.update(resident.grows)
        mapped.update(resident.mapped)
        if resident.holding == "promised":
            promised.update(resident.bytes)
    return Holdings(dict(held), dict(promised), dict(grows), dict(mapped))


def room_for(
    gpus: Sequence[Device],
    listed: Sequence[Device],
    pool: PoolLimits,
    residents: Sequence[Resident] = (),
    ceilings: Mapping[str, int] | None = None,
) -> Hardware:
    """What one more launch may use of `gpus` and of host memory, beside `residents` of any pool.

    `listed` are all devices, the host among them. Limits of the pool are per device; to host memory they
    apply where it is the pool's own device. Of a server that serves one process at a time nothing is left
    while somebody has any of its devices.
    """
    host = host_of(listed)
    ours = holdings(residents)
    own_host = is_host_pool(pool) or (AUTO in pool.devices and not gpus)
    on_host = ours
    if own_host:  # a budget is for the pool, and models of other pools use host memory as well
        on_host = replace(ours, held=holdings(r for r in residents if r.pool == pool.name).held)
    free = 0 if host is None else _free_bytes(host, ours, in_host_memory(listed))
    if own_host and pool.budget_bytes is not None:
        free = min(free, max(0, pool.budget_bytes - on_host.held.get(HOST, 0)))
    reserves = {gpu.name: pool.reserve_bytes for gpu in gpus} if pool.reserve_bytes else {}
    if own_host and pool.reserve_bytes:
        reserves[HOST] = pool.reserve_bytes
    taken = taken_names(listed, residents)
    seen = [replace(gpu, free_bytes=0 if gpu.name in taken else _free_bytes(gpu, ours)) for gpu in gpus]
    if host is not None:
        seen = [fit_view(gpu, free) for gpu in seen]
    return Hardware(
        gpus=tuple(_budget(gpu, pool, ours) for gpu in seen),
        host_free_bytes=free,
        host_total_bytes=0 if host is None else host.total_bytes,
        fill_fraction=pool.fill,
        reserves_bytes=reserves,
        ceilings_bytes=dict(ceilings or {}),
        unified=frozenset(gpu.name for gpu in gpus if gpu.is_unified),
        mapped_limit_bytes=_mapped_limit(host, pool, residents, own_host=own_host),
    )


def emptied(hardware: Hardware) -> Hardware:
    """The same devices as if nothing were on them."""
    gpus = tuple(replace(gpu, free_bytes=gpu.total_bytes or gpu.free_bytes) for gpu in hardware.gpus)
    return replace(hardware, gpus=gpus)


def _budget(device: Device, pool: PoolLimits, ours: Holdings) -> GpuBudget:
    """A GPU, of which so much is free for us, with its pool's budget counted in (03 §9.4)."""
    known = gpu_budget(device)
    free, total = device.free_bytes, device.total_bytes
    if pool.budget_bytes is not None:
        free = min(free, max(0, pool.budget_bytes - ours.held.get(device.name, 0)))
        total = min(total, pool.budget_bytes)
    return replace(known, free_bytes=free, total_bytes=total)


def _free_bytes(device: Device, ours: Holdings, shared: Collection[str] = ()) -> int:
    """Of a device, beside what is ours; what lies on `shared` ones lies on it as well."""
    names = {device.name, *shared}
    listed = device.free_bytes - sum(ours.promised.get(name, 0) for name in names)
    if not device.total_bytes:
        return max(0, listed)
    return max(0, min(listed, device.total_bytes - sum(ours.held.get(name, 0) for name in names)))


def _mapped_limit(
    host: Device | None, pool: PoolLimits, residents: Sequence[Resident], *, own_host: bool
) -> int | None:
    """Pages count against a written budget, and where others read theirs: together they would push each other
    out. A model alone may be larger than memory."""
    if host is None or not own_host:
        return None
    mine = [resident for resident in residents if resident.pool == pool.name]
    others = sum(resident.mapped.get(HOST, 0) for resident in mine)
    held = sum(resident.bytes.get(HOST, 0) for resident in mine)
    if pool.budget_bytes is not None:
        most = min(pool.budget_bytes, host.total_bytes or pool.budget_bytes)
        return max(0, most - pool.reserve_bytes - others - held)
    return max(0, host.total_bytes - others - held) if others and host.total_bytes else None
