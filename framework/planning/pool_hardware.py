"""The memory that a launch may use: the engine's devices, as far as its pool and its line allow. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from framework.planning.memory import GpuBudget, Hardware
from framework.values.device import Device
from framework.values.request import PoolLimits

Backend = Literal["cuda", "vulkan", "metal", "rpc", "other"]
# How engines begin the names of their devices. HIP and MUSA builds share the CUDA code.
BACKENDS: Mapping[str, Backend] = {
    "cuda": "cuda",
    "rocm": "cuda",
    "musa": "cuda",
    "vulkan": "vulkan",
    "mtl": "metal",
    "metal": "metal",
    "rpc": "rpc",
}
AUTO = "auto"
HOST_POOL = "cpu"


def hardware_of(
    devices: Sequence[Device], pool: PoolLimits, on_line: Collection[str] | None = None
) -> Hardware:
    """Host memory and the GPUs that the engine will use, in its order: remote ones come first.

    `on_line` are the devices that the command line names, None where it names none.
    """
    host = next((device for device in devices if device.kind == "cpu"), None)
    gpus = [device for device in devices if device.kind != "cpu" and _is_taken(device.name, pool, on_line)]
    gpus.sort(key=lambda device: device.kind != "rpc")
    return Hardware(
        gpus=tuple(map(gpu_budget, gpus)),
        host_free_bytes=host.free_bytes if host else 0,
        host_total_bytes=host.total_bytes if host else 0,
    )


def gpu_budget(device: Device) -> GpuBudget:
    """A GPU as memory is planned with it."""
    return GpuBudget(device.name, device.free_bytes, device.total_bytes, backend_of(device.name))


def backend_of(name: str) -> Backend:
    """What drives a device, by the engine's name for it."""
    return next((kind for start, kind in BACKENDS.items() if name.lower().startswith(start)), "other")


def _is_taken(name: str, pool: PoolLimits, on_line: Collection[str] | None) -> bool:
    if on_line is not None:
        return name in on_line
    return HOST_POOL not in pool.devices and (AUTO in pool.devices or name in pool.devices)
