"""Which devices a pool has (01 §1.1). Pure; called by planning, the API and whoever lists devices.

A pool names devices as the engine lists them, GPUs by UUID, servers as `rpc://host:port`, host memory as
`cpu`, or takes all local GPUs with `auto`. Where two pools could take a device, the one that names it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from framework.values.device import Device
from framework.values.device_words import AUTO, CPU, REMOTE
from framework.values.request import PoolLimits


def servers_of(pools: Iterable[PoolLimits]) -> tuple[str, ...]:
    """`host:port` of every server that a pool names, each once, in the order of the manifest.

    In this order remote devices are counted whose servers are met for the first time.
    """
    named = (name for pool in pools for name in pool.devices)
    return tuple(dict.fromkeys(name.removeprefix(REMOTE) for name in named if name.startswith(REMOTE)))


def names_device(names: Iterable[str], device: Device) -> bool:
    """Whether one of `names` means this very device. `auto` means none."""
    own = {device.name, device.uuid, f"{REMOTE}{device.endpoint}"} - {"", REMOTE}
    if device.kind == "cpu":
        own.add(CPU)
    return any(name in own for name in names)


def members(devices: Sequence[Device], pool: PoolLimits) -> tuple[Device, ...]:
    """The devices that models of a pool may use. `auto` has all local GPUs or, where there are none, host
    memory; of a card that two runtimes list it has the better one."""
    chosen = [device for device in devices if names_device(pool.devices, device)]
    if AUTO in pool.devices:
        chosen += [device for device in _automatic(devices) if device not in chosen]
    return tuple(device for device in devices if device in chosen)


def in_pools(devices: Sequence[Device], pools: Iterable[PoolLimits]) -> tuple[Device, ...]:
    """The devices, each with the pool that has it: the first that names it, else the first that takes it as
    well; None where none does, whatever it had before."""
    ordered = tuple(pools)
    automatic = {device.name for device in _automatic(devices)}

    def pool_of(device: Device) -> str | None:
        naming = (pool.name for pool in ordered if names_device(pool.devices, device))
        taking = (pool.name for pool in ordered if AUTO in pool.devices and device.name in automatic)
        return next(naming, None) or next(taking, None)

    return tuple(replace(device, pool=pool_of(device)) for device in devices)


def _automatic(devices: Sequence[Device]) -> tuple[Device, ...]:
    local = tuple(device for device in devices if device.kind == "gpu" and not device.same_as)
    return local or tuple(device for device in devices if device.kind == "cpu")
