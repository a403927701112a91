"""Which devices a launch may use: those of its pool and its pick, or those that its line names. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from framework.hardware.membership import members, names_device
from framework.manifest.environment import PLACEMENT_VARIABLES
from framework.planning.line_settings import read_line
from framework.planning.memory.settings import GpuBudget
from framework.planning.placement.slices import go_together
from framework.values.device import HOST_NAME, Device
from framework.values.device_words import AUTO, CPU, REMOTE
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest, PoolLimits

Backend = Literal["cuda", "vulkan", "metal", "rpc", "other"]
# How engines begin the names of their devices. HIP and MUSA builds share the CUDA code.
BACKENDS: Mapping[str, Backend] = {
    "cuda": "cuda",
    "mig": "cuda",
    "rocm": "cuda",
    "musa": "cuda",
    "vulkan": "vulkan",
    "mtl": "metal",
    "metal": "metal",
    "rpc": "rpc",
}


def gpus_of(
    devices: Sequence[Device], request: ModelRequest, unlisted: Sequence[Reason] = ()
) -> tuple[Device, ...]:
    """GPUs of the request's pool, or those of them that it picks; remote ones come first, as in the engine.

    Raises Refused for names that no device has (04 §8.3): of a pick any, of a pool all; and for a pick that
    no process can use as a whole. `unlisted` say why servers are not in the list; such a start is tried
    again.
    """
    pool = request.pool
    if is_host_pool(pool):
        return ()
    found = [device for device in members(devices, pool) if device.kind != "cpu"]
    if request.devices is not None:
        _check_names(request.devices, found, unlisted, f"models.{request.id}.placement.devices")
        found = [device for device in found if names_device(request.devices, device)]
        if not go_together(found):
            raise Refused(Failure(_one_slice_only(found, request)))
    elif not found:
        _check_names(pool.devices, devices, unlisted, f"pools.{pool.name}.devices")
    return tuple(sorted(found, key=lambda device: device.kind != "rpc"))


def gpus_on_line(devices: Sequence[Device], names: Collection[str]) -> tuple[Device, ...]:
    """GPUs that a command line names, in the engine's order."""
    found = [device for device in devices if device.kind != "cpu" and device.name in names]
    return tuple(sorted(found, key=lambda device: device.kind != "rpc"))


def host_of(devices: Sequence[Device]) -> Device | None:
    """Host memory, where it is listed."""
    return next((device for device in devices if device.kind == "cpu"), None)


def is_host_pool(pool: PoolLimits) -> bool:
    """Whether the pool is host memory and nothing else."""
    return CPU in pool.devices


def is_accelerated(request: ModelRequest, devices: Sequence[Device], declared: Mapping[str, str]) -> bool:
    """Whether decoding will run on GPUs, as far as that is known before memory is planned (05 §3.2).

    The user's own flags, then variables, count over the manifest's number of layers (04 §11.5); `declared` is
    what `child_env.declared_environment` gives.
    """
    is_manual = request.memory_mode == "manual"
    overruled = PLACEMENT_VARIABLES if is_manual else ()
    env = {name: value for name, value in declared.items() if name not in overruled}
    line = read_line(request.extra_args, env)
    asked = request.gpu_layers if is_manual and request.gpu_layers >= 0 else None
    layers = asked if line.offload.gpu_layers is None else line.offload.gpu_layers
    if layers == 0 or (line.devices is not None and all(name.lower() == CPU for name in line.devices)):
        return False
    try:
        return bool(gpus_of(devices, request))
    except Refused:
        return False


def gpu_budget(device: Device) -> GpuBudget:
    """A GPU as memory is planned with it."""
    return GpuBudget(device.name, device.free_bytes, device.total_bytes, backend_of(device.name))


def backend_of(name: str) -> Backend:
    """What drives a device, by the engine's name for it."""
    return next((kind for start, kind in BACKENDS.items() if name.lower().startswith(start)), "other")


def _check_names(
    names: Collection[str], devices: Sequence[Device], unlisted: Sequence[Reason], where: str
) -> None:
    """Every name has to be that of a device."""
    wanted = [name for name in names if name not in (AUTO, CPU, HOST_NAME)]
    missing = sorted(
        {name for name in wanted if not any(names_device((name,), device) for device in devices)}
    )
    if not missing:
        return
    servers = {name.removeprefix(REMOTE) for name in missing if name.startswith(REMOTE)}
    if servers:
        said = (reason for reason in unlisted if reason.evidence.get("endpoint") in servers)
        raise Refused(Failure(next(said, None) or _unreachable(sorted(servers), where), retryable=True))
    listed = sorted(device.name for device in devices if device.name != HOST_NAME)
    reason = Reason(
        "device_unmatched",
        f"{where} names {', '.join(missing)}; the engine lists {', '.join(listed) or 'no device'}.",
        "`paddock devices` shows what can be named.",
        "error",
        {"requested": missing, "available": listed},
    )
    raise Refused(Failure(reason))


def _one_slice_only(picked: Sequence[Device], request: ModelRequest) -> Reason:
    names = ", ".join(device.name for device in picked)
    return Reason(
        "one_slice_only",
        f"models.{request.id}.placement.devices picks {names}; a process can use one slice of a card, and no"
        " other CUDA device beside it.",
        "Pick one of them.",
        "error",
        {"devices": [device.name for device in picked]},
    )


def _unreachable(servers: Sequence[str], where: str) -> Reason:
    return Reason(
        "rpc_unreachable",
        f"{where} names {', '.join(servers)}, and no device of it is listed.",
        "Start the server, or correct the address; the model is tried again by itself.",
        "error",
        {"endpoint": servers[0]},
    )
