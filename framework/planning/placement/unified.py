"""Models that can never fit into a processor's shared memory (04 §6.2). Pure.

On such a chip weights lie in system memory; a load that is too large is stopped half-way by the system. What
would fit once others leave is left to the search for a place.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.engines.tuning import is_shared_memory_chip
from framework.values.device import HOST_NAME, Device
from framework.values.pool import Resident
from framework.values.reason import Failure, Reason, Refused
from framework.values.units_text import size

MIB = 1 << 20
HEADROOM_BYTES = 2048 * MIB


def exceeds_memory(weight_bytes: int, available_bytes: int) -> bool:
    """Whether weights leave too little of what is available, 0 for not known."""
    return available_bytes > 0 and weight_bytes > available_bytes - HEADROOM_BYTES


def check_unified(
    weight_bytes: int, gpus: Sequence[Device], devices: Sequence[Device], residents: Sequence[Resident]
) -> None:
    """Raises Refused (`unified_memory_refused`) for weights that would not fit even without anybody else."""
    if not any(gpu.name.startswith("ROCm") and is_shared_memory_chip(gpu.architecture) for gpu in gpus):
        return
    host = next((device for device in devices if device.name == HOST_NAME), None)
    available = host.free_bytes if host else 0
    if available:
        available += sum(resident.total_bytes for resident in residents)
    if not exceeds_memory(weight_bytes, available):
        return
    raise Refused(
        Failure(
            Reason(
                "unified_memory_refused",
                f"Its weights are {size(weight_bytes)} and {size(available)} can be had: here they"
                " lie in system memory, and such a load would be stopped half-way by the system.",
                "Use a smaller quantisation, free memory, or on WSL raise the limit in .wslconfig.",
                "error",
                {"needed_bytes": weight_bytes, "available_bytes": available},
            )
        )
    )
