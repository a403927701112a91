"""The memories a binary can use: what it lists, what RPC servers have, and the host's (04 §2.5, 2.6, 4.7).

Called at plan time and by `paddock devices`. A probe may hold a device context, so it ends with the call.
Each server is asked by a probe of its own: one that is away or busy takes nothing else with it. When a probe
fails, the other memories remain and a reason says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psutil

from framework.engines.child_env import probe_environment
from framework.engines.library_path import library_path
from framework.engines.process_output import ProcessOutput, process_output
from framework.engines.visibility import BUS_ORDER, ORDER_VARIABLE
from framework.hardware.card_facts import with_card_facts
from framework.hardware.device_list import parse_device_list
from framework.hardware.driver import DriverFacts, read_driver
from framework.hardware.remote import SERVER_TIMEOUT_S, DeviceNumbers, ServerAnswer, ask_server
from framework.values.device import HOST_NAME, Device
from framework.values.engine import EngineBinary
from framework.values.reason import Reason

# Opening a sleeping GPU takes seconds; longer means that its driver hangs.
LIST_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class DeviceList:
    """Remote devices, then GPUs as the engine lists them, then host memory; and what could not be found out.

    A device that is not here cannot be used now. Where that is a server, a reason `rpc_unreachable` or
    `rpc_busy` has its `endpoint` as evidence.
    """

    devices: tuple[Device, ...]
    reasons: tuple[Reason, ...] = ()

    def why_not(self, endpoint: str) -> Reason | None:
        """Why no device of a server is in the list; None where nothing is said about it."""
        return next((one for one in self.reasons if one.evidence.get("endpoint") == endpoint), None)


async def list_devices(
    binary: EngineBinary,
    environ: Mapping[str, str],
    *,
    timeout_s: float = LIST_TIMEOUT_S,
    rpc: Sequence[str] = (),
) -> DeviceList:
    """Ask `binary` for its devices and for those of the servers `rpc`, `host:port` each. Never raises.

    `environ` is the manager's: the inherited masks apply, as they will for the engine. Remote devices are
    counted over `rpc`, by this call alone. Where instances may hold servers, ask a `DeviceCache`.
    """
    servers = tuple(dict.fromkeys(rpc))
    limit_s = min(timeout_s, SERVER_TIMEOUT_S)
    asking = [ask_server(binary, environ, server, timeout_s=limit_s) for server in servers]
    local, answers = await asyncio.gather(
        list_local(binary, environ, timeout_s=timeout_s), asyncio.gather(*asking)
    )
    return together(local, DeviceNumbers().named(servers, answers), answers)


async def list_local(
    binary: EngineBinary, environ: Mapping[str, str], *, timeout_s: float = LIST_TIMEOUT_S
) -> DeviceList:
    """The devices of this machine that `binary` lists, with what the drivers say of them, and host memory."""
    # Engines count in bus order as well (04 §8.2), whatever the manager's environment says.
    env = {**probe_environment(environ, library_path(binary, environ)), ORDER_VARIABLE: BUS_ORDER}
    argv = (str(binary.entry), "--list-devices")
    output, driver = await asyncio.gather(
        process_output(argv, env, timeout_s=timeout_s), asyncio.to_thread(read_driver)
    )
    if output.exit_code != 0:
        return DeviceList((host_memory(),), (_unknown(binary, output),))
    return described(output.stdout, driver, environ)


def described(listing: str, driver: DriverFacts, environ: Mapping[str, str]) -> DeviceList:
    """A listing with what the drivers know of its devices, and host memory as the system has it now."""
    host = host_memory()
    devices, reasons = with_card_facts(parse_device_list(listing), driver, environ, host)
    return DeviceList((*devices, host), reasons)


def together(local: DeviceList, remote: Sequence[Device], answers: Sequence[ServerAnswer]) -> DeviceList:
    """One list of what was asked for separately, in the engine's order: remote devices come first."""
    own = tuple(device for device in local.devices if device.kind != "rpc")
    reasons = tuple(answer.reason for answer in answers if answer.reason is not None)
    return DeviceList((*remote, *own), (*local.reasons, *reasons))


def host_memory() -> Device:
    """Host memory as a device: total, and what the system could hand out without swapping."""
    memory = psutil.virtual_memory()
    return Device(HOST_NAME, "cpu", memory.total, min(memory.available, memory.total), "host memory")


def with_host_memory(found: DeviceList) -> DeviceList:
    """A list with host memory as it is now."""
    others = tuple(device for device in found.devices if device.name != HOST_NAME)
    return replace(found, devices=(*others, host_memory()))


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
