"""`host:port` and device names as the manifest writes them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Any

from framework.manifest.bad_value import BadValue
from framework.values.device_words import AUTO, CPU, REMOTE
from framework.values.manifest import Listener

HIGHEST_PORT = 65535
HOST = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
PORT = re.compile(r"[0-9]{1,9}")
DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
UUID = re.compile(r"(GPU|MIG)-[A-Za-z0-9/-]{1,80}")
# These numbers are given as servers are met, so after a restart they may be those of others.
NUMBERED_REMOTE = re.compile(r"(?i)RPC[0-9]*")
DEFAULT_LISTENER = Listener()
# Build b10068 takes everything behind the first colon for the port, and finds no server.
NO_IPV6 = (
    'the name or the IPv4 address of a server: engines cannot read an IPv6 address there ("rpc://host:port")'
)
ADDRESS_FORM = f'host:port with a port from 1 to {HIGHEST_PORT}, as in "127.0.0.1:8080" or "[::1]:8080"'


def parse_address(value: Any) -> Listener:
    """A listener: name or address of a host, IPv6 in brackets, and a port."""
    if not isinstance(value, str):
        raise BadValue("wrong_type", ADDRESS_FORM)
    host, colon, port = value.strip().rpartition(":")
    if not colon or not PORT.fullmatch(port):
        raise BadValue("bad_address", ADDRESS_FORM, suggestion=_completed(value.strip()))
    if not host:
        any_host = f'"0.0.0.0:{port}" for every network, "127.0.0.1:{port}" for this machine only'
        raise BadValue("bad_address", f"{ADDRESS_FORM}; the host is missing: {any_host}")
    if not 1 <= int(port) <= HIGHEST_PORT:
        raise BadValue("out_of_range", ADDRESS_FORM)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise BadValue("bad_address", ADDRESS_FORM)
    elif not HOST.fullmatch(host) or _looks_like_bad_ipv4(host):
        meant = f'"[{host}]:{port}"' if _is_ipv6(host) else ""
        raise BadValue("bad_address", ADDRESS_FORM, suggestion=meant)
    return Listener(host, int(port))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host. Names other than `localhost` count as reachable."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_device(value: Any) -> str:
    """`auto`, `cpu`, a device as the engine lists it, the UUID of a GPU, or `rpc://host:port`."""
    form = '"auto", "cpu", a device as the engine lists it ("CUDA0"), a GPU\'s UUID or "rpc://host:port"'
    if not isinstance(value, str):
        raise BadValue("bad_device", form)
    if value.lower() in (AUTO, CPU):  # listings call host memory `CPU`
        return value.lower()
    if value.startswith(REMOTE):
        try:
            server = parse_address(value.removeprefix(REMOTE))
        except BadValue:
            raise BadValue("bad_device", form) from None
        if ":" in server.host:
            raise BadValue("bad_device", NO_IPV6)
        return f"{REMOTE}{replace(server, host=server.host.lower())}"
    if NUMBERED_REMOTE.fullmatch(value):
        raise BadValue("bad_device", 'the address of the server, as in "rpc://127.0.0.1:50052"')
    if not DEVICE.fullmatch(value) and not UUID.fullmatch(value):
        raise BadValue("bad_device", form)
    return value


def is_remote(device: str) -> bool:
    """Whether a device of the manifest is a server of llama.cpp's RPC backend."""
    return device.startswith(REMOTE)


def is_uuid(device: str) -> bool:
    """Whether a device of the manifest is a GPU's UUID, which does not tell what the engine calls it."""
    return UUID.fullmatch(device) is not None


def _completed(text: str) -> str:
    """A port or a host alone with the other half; empty for what is no more than a word."""
    if PORT.fullmatch(text) and 1 <= int(text) <= HIGHEST_PORT:
        return f'"{DEFAULT_LISTENER.host}:{text}"'
    port = DEFAULT_LISTENER.port
    if _is_ipv6(text):
        return f'"[{text}]:{port}"'
    named = text == "localhost" or "." in text
    return f'"{text}:{port}"' if named and HOST.fullmatch(text) and not _looks_like_bad_ipv4(text) else ""


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _looks_like_bad_ipv4(host: str) -> bool:
    if not re.fullmatch(r"[0-9.]+", host):
        return False
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return True
    return False
