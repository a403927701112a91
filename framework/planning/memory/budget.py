"""What of a device may be planned with (03 §9.4). Pure."""

from __future__ import annotations

from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware


def usable_bytes(free: int, total: int, fraction: float, *, reserve: int = 0) -> int:
    """Of a GPU's free memory, what may be taken so that (1 - fraction) of the whole stays free.

    `total` 0 means unknown: then the fraction counts of what is free.
    """
    usable = max(0.0, free - (1 - fraction) * total) if total > 0 else free * fraction
    return max(0, int(usable) - reserve)


def budgets(hardware: Hardware) -> dict[str, int]:
    """Usable bytes by device. Host memory gives all that is free, less its reserve; unknown is left out."""
    reserves = hardware.reserves_bytes
    found = {
        gpu.name: usable_bytes(
            gpu.free_bytes, gpu.total_bytes, hardware.fill_fraction, reserve=reserves.get(gpu.name, 0)
        )
        for gpu in hardware.gpus
    }
    if hardware.host_free_bytes:
        found[HOST] = max(0, hardware.host_free_bytes - reserves.get(HOST, 0))
    return found
