"""Devices of llama.cpp's RPC servers: who may be asked, and what it answered (04 §2.6).

A server serves one client at a time and lets all others wait, and one that gives up waiting can take the
server with it. So a server in use is never asked: not while one of our instances holds it, which the caller
knows, nor while a program on this machine does, which the system's table of connections tells.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psutil

from framework.engines.child_env import probe_environment
from framework.engines.library_path import library_path
from framework.engines.process_output import ProcessOutput, process_output
from framework.hardware.device_list import parse_device_list
from framework.values.device import Device
from framework.values.engine import EngineBinary
from framework.values.plain_text import visible
from framework.values.reason import Reason

# After a client is gone its server needs a moment to notice.
LOOKS, BETWEEN_LOOKS_S = 4, 0.15
# The server's devices are wanted, not those of this machine.
NO_LOCAL_DEVICES: Mapping[str, str] = {
    "GGML_VK_VISIBLE_DEVICES": "",
    "CUDA_VISIBLE_DEVICES": "-1",
    "HIP_VISIBLE_DEVICES": "-1",
}
LAST_LINE_LIMIT = 200
OTHER_VERSION = re.compile(r"RPC server version mismatch: (\d{1,4}(?:\.\d{1,4}){0,3})")
# One that is free answers in milliseconds, over a slow line in a second.
SERVER_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class ServerAnswer:
    """The devices of one server by its own count, or why there are none."""

    devices: tuple[Device, ...] = ()
    reason: Reason | None = None
    hung: bool = False
    """It let the question wait until the time was up, and should not be asked again soon."""


async def ask_server(
    binary: EngineBinary, environ: Mapping[str, str], endpoint: str, *, timeout_s: float
) -> ServerAnswer:
    """What `host:port` offers now, as `binary` sees it. Never raises."""
    if await _stays_in_use(endpoint):
        return ServerAnswer(reason=_in_use(endpoint, "another program on this machine is connected to it"))
    env = {**probe_environment(environ, library_path(binary, environ)), **NO_LOCAL_DEVICES}
    # Only read when it stands in front (15 §9).
    argv = (str(binary.entry), "--rpc", endpoint, "--list-devices")
    output = await process_output(argv, env, timeout_s=timeout_s)
    if output.exit_code is None and output.fault.startswith("did not end"):
        what = f"it did not answer within {timeout_s:g} s, as a server does that serves somebody else"
        return ServerAnswer(reason=_in_use(endpoint, what), hung=True)
    listed = parse_device_list(output.stdout) if output.exit_code == 0 else ()
    devices = tuple(replace(device, endpoint=endpoint) for device in listed if device.kind == "rpc")
    return ServerAnswer(devices) if devices else ServerAnswer(reason=_unreachable(endpoint, output))


def held(endpoint: str, known: Sequence[Device]) -> ServerAnswer:
    """A server that one of our instances holds: as it was when it was free."""
    if known:
        return ServerAnswer(tuple(known))
    return ServerAnswer(reason=_in_use(endpoint, "an instance holds it, and it was never asked before"))


class DeviceNumbers:
    """Numbers of remote devices: `RPC<n>` means one and the same device for as long as this lives.

    They are given as servers are met, and never again to another: whatever pools come and go, the books about
    who holds which device stay true. A server that does not answer has its first number all the same.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int] = {}
        """By server and the server's own count of its devices."""

    def named(self, servers: Sequence[str], answers: Sequence[ServerAnswer]) -> tuple[Device, ...]:
        """All remote devices under the names that everybody uses. New ones are counted in this order."""
        found: list[Device] = []
        for endpoint, answer in zip(servers, answers, strict=True):
            self._number(endpoint, 0)
            found += [
                replace(device, name=f"RPC{self._number(endpoint, place)}")
                for place, device in enumerate(answer.devices)
            ]
        return tuple(found)

    def _number(self, endpoint: str, place: int) -> int:
        return self._known.setdefault((endpoint, place), len(self._known))


def is_in_use(endpoint: str) -> bool:
    """Whether a process on this machine is connected to a server, or waits for it. Blocking.

    False where the system does not tell, or the server's address is not known without a name server.
    """
    address = _address(endpoint)
    if address is None:
        return False
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return False
    return any(
        (one.status == psutil.CONN_ESTABLISHED and address in (_plain(one.laddr), _plain(one.raddr)))
        or (one.status == psutil.CONN_CLOSE_WAIT and address == _plain(one.laddr))
        for one in connections
    )


async def _stays_in_use(endpoint: str) -> bool:
    for _ in range(LOOKS):
        if not await asyncio.to_thread(is_in_use, endpoint):
            return False
        await asyncio.sleep(BETWEEN_LOOKS_S)
    return True


def _address(endpoint: str) -> tuple[str, int] | None:
    host, _, port = endpoint.rpartition(":")
    host = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    try:
        return str(ipaddress.ip_address(host)), int(port)
    except ValueError:
        return None


def _plain(end: object) -> tuple[str, int] | None:
    """One end of a connection; an IPv4 address that came over an IPv6 socket is written as such."""
    ip, port = getattr(end, "ip", None), getattr(end, "port", None)
    if not isinstance(ip, str) or not isinstance(port, int):
        return None
    return ip.removeprefix("::ffff:"), port


def _in_use(endpoint: str, why: str) -> Reason:
    return Reason(
        "rpc_busy",
        f"The RPC server {endpoint} cannot be asked for its devices: {why}.",
        "A server serves one program at a time: end the other one, or start another server.",
        "warning",
        {"endpoint": endpoint},
    )


def _unreachable(endpoint: str, output: ProcessOutput) -> Reason:
    lines = (*output.stdout.splitlines(), *output.stderr.splitlines())
    last = next((line for line in reversed(lines) if line.strip()), "")
    said = visible(last.strip())[:LAST_LINE_LIMIT]
    other = next((match[1] for line in lines if (match := OTHER_VERSION.search(line))), "")
    what = (
        f"speaks version {other} of the protocol, which this engine does not"
        if other
        else "cannot be reached"
    )
    return Reason(
        "rpc_unreachable",
        f"The RPC server {endpoint} {what}, so models of its pool cannot be placed on it.",
        f"Start ggml-rpc-server there, of the same llama.cpp release as the engine, or take rpc://{endpoint}"
        " out of the pool.",
        "warning",
        {"endpoint": endpoint, "version": other, "exit_code": output.exit_code, "last_line": said},
    )
