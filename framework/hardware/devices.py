"""The memories a binary can use: its own device list, and the host's (04 §2.5, 4.7).

Called at plan time and by `paddock devices`. The probe may hold a device context, so it never outlives
the call. When it fails, host memory remains and a reason says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from framework.engines.child_env import probe_environment
from framework.engines.library_path import library_path
from framework.engines.process_output import ProcessOutput, process_output
from framework.hardware.device_list import parse_device_list
from framework.values.device import HOST_NAME, Device
from framework.values.engine import EngineBinary
from framework.values.reason import Reason

# Opening a sleeping GPU takes seconds; longer means that its driver hangs.
LIST_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class DeviceList:
    """Devices as the engine lists them, host memory last, and what could not be found out."""

    devices: tuple[Device, ...]
    reasons: tuple[Reason, ...] = ()


async def list_devices(
    binary: EngineBinary,
    environ: Mapping[str, str],
    *,
    timeout_s: float = LIST_TIMEOUT_S,
    rpc: tuple[str, ...] = (),
) -> DeviceList:
    """Ask `binary` for its devices; `rpc` holds `host:port` of servers to be included. Never raises.

    `environ` is the manager's: the inherited masks apply, as they will for the engine.
    """
    env = probe_environment(environ, library_path(binary, environ))
    servers = ("--rpc", ",".join(rpc)) if rpc else ()  # only read when it stands in front (15 §9)
    argv = (str(binary.entry), *servers, "--list-devices")
    output = await process_output(argv, env, timeout_s=timeout_s)
    if output.exit_code != 0:
        return DeviceList((host_memory(),), (_unknown(binary, output),))
    return DeviceList((*parse_device_list(output.stdout), host_memory()))


def host_memory() -> Device:
    """Host memory as a device: total, and what the system could hand out without swapping."""
    memory = psutil.virtual_memory()
    return Device(HOST_NAME, "cpu", memory.total, min(memory.available, memory.total), "host memory")


def _unknown(binary: EngineBinary, output: ProcessOutput) -> Reason:
    what = output.fault or _ending(output.exit_code)
    last_line = next((line for line in reversed(output.stderr.splitlines()) if line.strip()), "")
    return Reason(
        "devices_unknown",
        f"Devices are not known: {binary.entry} --list-devices {what}. Only host memory is planned with.",
        f"Run {binary.entry} --list-devices to see what it says, and check the GPU driver.",
        "warning",
        {"path": str(binary.entry), "exit_code": output.exit_code, "last_line": last_line.strip()[:200]},
    )


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was ended by signal {-exit_code}"
    return f"exited with {exit_code}"
