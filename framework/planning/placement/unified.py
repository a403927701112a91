"""Models that do not fit into a processor's shared memory (04 §6.2, 6.3). Pure. Called by launch_place.

On such a chip weights lie in system memory; a load that is too large is stopped half-way by the system. What
never fits is refused for good; what would fit once others leave is no place now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.engines.tuning import is_shared_memory_chip
from framework.hardware.unified import in_host_memory
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
) -> Reason | None:
    """`does_not_fit` for weights for which others have to leave first.

    Raises Refused (`unified_memory_refused`) for weights that would not fit even without anybody else.
    """
    chips = [gpu for gpu in gpus if gpu.name.startswith("ROCm") and is_shared_memory_chip(gpu.architecture)]
    host = next((device for device in devices if device.name == HOST_NAME), None)
    if not chips or host is None or not host.free_bytes:
        return None
    shared = in_host_memory(devices) | {chip.name for chip in chips}
    held = [(one, sum(one.bytes.get(name, 0) for name in shared)) for one in residents]
    promised = sum(taken for one, taken in held if one.holding == "promised")
    now = max(1, host.free_bytes - promised)
    given_back = host.free_bytes + sum(taken for one, taken in held if one.holding != "promised")
    if exceeds_memory(weight_bytes, given_back):
        raise Refused(Failure(_too_large(weight_bytes, given_back)))
    if not exceeds_memory(weight_bytes, now):
        return None
    return replace(_too_large(weight_bytes, now), code="does_not_fit")


def _too_large(weight_bytes: int, available: int) -> Reason:
    return Reason(
        "unified_memory_refused",
        f"Its weights are {size(weight_bytes)} and {size(available)} can be had: here they lie in system"
        " memory, and such a load would be stopped half-way by the system.",
        "Use a smaller quantisation, free memory, or on WSL raise the limit in .wslconfig.",
        "error",
        {"needed_bytes": weight_bytes, "available_bytes": available},
    )
