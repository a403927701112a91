"""`paddock doctor`: what is wrong on this machine and how to fix it (00 §5). Needs no server."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import closing
from pathlib import Path

from framework import state_dir
from framework.api.answers import DoctorCheck
from framework.api.doctor import Surroundings, examine
from framework.api.shapes import doctor_json, reason_json
from framework.commands.client import ApiClient
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import NOT_SO, OK, CommandFailed
from framework.commands.local import load
from framework.commands.options import JsonOption, ManifestOption
from framework.commands.output import print_json, print_reason, say
from framework.commands.target import Target, find_target
from framework.engines.probe import CapabilityCache
from framework.manifest.addresses import is_loopback
from framework.manifest.load import Loaded
from framework.settings import Settings
from framework.values.manifest import Listener
from framework.values.reason import Reason

# Our own server answers at once; whoever else listens there may never do.
PROBE_TIMEOUT_S = 2.0


def command(manifest: ManifestOption = None, as_json: JsonOption = False) -> int:
    """Look for everything that is wrong, and say how to fix it."""
    settings = read_settings()
    path = manifest_path(settings, manifest)
    loaded = load(path, settings)
    around = _surroundings(settings, path, loaded)
    checks = asyncio.run(examine(loaded, os.environ, CapabilityCache(), around))
    if as_json:
        print_json(doctor_json(checks))
    else:
        for check in checks:
            _print(check)
    return OK if all(check.ok for check in checks) else NOT_SO


def _print(check: DoctorCheck) -> None:
    mark, style = ("ok   ", "green") if check.ok else ("FAULT", "bold red")
    if check.ok and check.reason is not None and check.reason.remedy:
        mark, style = "note ", "yellow"
    say(f"{mark} {check.name}", style)
    if check.reason is not None:
        print_reason(reason_json(check.reason), indent="      ")


def _surroundings(settings: Settings, path: Path, loaded: Loaded) -> Surroundings:
    """What only the process at the terminal can find out: its state directory, its port."""
    target = find_target(settings, path, None)
    directory = target.state_dir
    fault = state_dir.find_reading_fault(directory)
    return Surroundings(directory, fault, _listener_fault(loaded, target))


def _listener_fault(loaded: Loaded, target: Target) -> Reason | None:
    """Nothing, when our own server answers at the listener or nobody holds it."""
    try:
        ApiClient(target, answer_timeout_s=PROBE_TIMEOUT_S).get("/status")
    except CommandFailed:
        pass
    else:
        return None
    return port_fault(target.listener if loaded.manifest is None else loaded.manifest.server.listen)


def port_fault(listener: Listener) -> Reason | None:
    """Why the address cannot be listened on, found by trying."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # As the server does: a connection in its last state is no reason to refuse.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listener.host, listener.port))
        except OSError as error:
            return _bind_reason(listener, error)
    return None


def _bind_reason(listener: Listener, error: OSError) -> Reason:
    if error.errno == errno.EADDRINUSE:
        message, remedy = f"Another program listens on {listener}.", "Stop it, or change server.listen."
    elif error.errno == errno.EACCES:
        message, remedy = f"{listener} needs special rights.", "Use a port from 1024 up in server.listen."
    else:
        where = "this machine" if is_loopback(listener.host) else "any network of this machine"
        message = f"{listener} is not an address of {where} ({error.strerror})."
        remedy = "Correct server.listen; 127.0.0.1 serves this machine, 0.0.0.0 every network."
    return Reason("listener_unusable", message, remedy, "error", {"listen": str(listener)})
