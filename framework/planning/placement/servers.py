"""Remote servers that somebody has: one serves one process at a time, with all its devices (MN-08). Pure.

Called by placement.room, and by planning.launch_delegated for launches that say themselves, or leave to the
engine, where things go: an engine connects to every server that it is given, and waits for one that serves
another.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.values.device import Device
from framework.values.pool import Resident
from framework.values.reason import Failure, Reason, Refused

UNNAMED = "a start that comes first"


def taken_names(devices: Sequence[Device], residents: Sequence[Resident]) -> frozenset[str]:
    """Names of exclusive devices that are out of reach: somebody holds one of the same server."""
    exclusive = [device for device in devices if device.is_exclusive]
    servers = {
        device.endpoint for device in exclusive if any(one.bytes.get(device.name) for one in residents)
    }
    return frozenset(device.name for device in exclusive if device.endpoint in servers)


def refuse_taken(used: Sequence[Device], devices: Sequence[Device], residents: Sequence[Resident]) -> None:
    """Raises Refused (`does_not_fit`) where a launch would use a device of a server that somebody has."""
    taken = taken_names(devices, residents)
    servers = sorted({device.endpoint for device in used if device.name in taken})
    if not servers:
        return
    names = sorted(device.name for device in devices if device.endpoint in servers)
    holders = [one for one in residents if any(one.bytes.get(name) for name in names)]
    who = " and ".join(dict.fromkeys(one.model or UNNAMED for one in holders))
    held = {name: {r.instance: r.bytes[name] for r in holders if r.bytes.get(name)} for name in names}
    raise Refused(
        Failure(
            Reason(
                "does_not_fit",
                f"It uses {' and '.join(servers)}, and a server serves one process at a time: {who} has it;"
                " it is not started.",
                f"Unload {who}, or use other devices.",
                "error",
                {"servers": servers, "held_bytes": {name: by for name, by in held.items() if by}},
            )
        )
    )
