"""Failure classes of starts on remote devices (06 §14, 04 §17). Pure; called by runtime.failures."""

from __future__ import annotations

from framework.runtime.remote_devices import connection_broke, endpoints, missing_servers, silent_servers
from framework.runtime.start_end import SEARCH_LINES, StartEnd, Told


def server_missing(end: StartEnd) -> Told | None:
    """A server that the engine could not connect to, or that speaks another version of the protocol."""
    missing = missing_servers(end.plan, end.lines)
    if not missing:
        return None
    differing = next((server for server in missing if server.version), None)
    if differing is not None:
        engine = end.plan.caps.version or str(end.plan.engine.entry)
        return (
            "rpc_version_mismatch",
            f"The RPC server {differing.endpoint} speaks version {differing.version} of the protocol, and"
            f" this engine ({engine}) another one, so that it would go on without that device.",
            "Run the ggml-rpc-server of the same llama.cpp build as the engine; it is tried again by itself.",
        )
    names = " and ".join(server.endpoint for server in missing)
    return (
        "rpc_lost",
        f"Nothing answers at {names}; the engine would have gone on without that device.",
        "Start the ggml-rpc-server there, or take it out of the pool; it is tried again by itself.",
    )


def server_silent(end: StartEnd) -> Told | None:
    """A server that never answered until the time was up."""
    silent = silent_servers(end.plan, end.lines) if end.outcome == "timeout" else ()
    if not silent:
        return None
    return (
        "rpc_busy",
        f"The RPC server {silent[0]} did not answer in {end.waited_s:.0f} s. Such a server serves one program"
        " at a time, and others wait.",
        "Find out who uses it, or give the pool a server of its own; it is tried again by itself.",
    )


def server_broke(end: StartEnd) -> Told | None:
    """A server that was lost while the model was loaded."""
    names = endpoints(end.plan)
    if not names or not connection_broke(end.lines[-SEARCH_LINES:]):
        return None
    return (
        "rpc_lost",
        f"The connection to {' or '.join(names)} broke while the model was loaded: the RPC server ended,"
        " or had too little memory to take in what was sent.",
        "Look at what that server printed, and at the memory of its machine; it is tried again by itself.",
    )
