"""Variables that make engines faster on some hardware (04 §6.1, §7). Pure; called by planning.

They are defaults: whoever sets one of them in the manifest or the environment keeps what was set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from framework.values.device import Device

# Processors whose graphics unit works on system memory, by their names in the ROCm world.
SHARED_MEMORY_CHIPS = frozenset({"gfx1150", "gfx1151", "gfx1152"})
UNIFIED_MEMORY = "GGML_CUDA_ENABLE_UNIFIED_MEMORY"
FULL_PRECISION = "GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F"
PEER_ACCESS, LAUNCH_QUEUES = "GGML_CUDA_P2P", "CUDA_SCALE_LAUNCH_QUEUES"
DATACENTER_CARDS = re.compile(
    r"(?<![a-z0-9])(?:a100|a30|h100|h200|h800|gh200|b200|b100|b300|gb200|gb300|l40|l40s|l4"
    r"|rtx pro 6000|rtx 6000 ada)(?![a-z0-9])"
)


def is_shared_memory_chip(architecture: str) -> bool:
    """Whether an architecture such as `gfx1151:sramecc-` is that of an APU, whose memory is the host's."""
    return architecture.split(":", maxsplit=1)[0] in SHARED_MEMORY_CHIPS


def is_datacenter_card(name: str) -> bool:
    """Whether the name of a card is one of those that are built for datacenters, as a whole word."""
    return DATACENTER_CARDS.search(name.lower()) is not None


def tuning_variables(devices: Sequence[Device], *, datacenter_tuning: bool = True) -> dict[str, str]:
    """What an engine that uses `devices` is told where nobody said otherwise. Remote ones do not count.

    Single precision costs nothing on datacenter cards and much on others, so all of them must be such.
    """
    if any(
        device.name.startswith("ROCm") and is_shared_memory_chip(device.architecture) for device in devices
    ):
        return {UNIFIED_MEMORY: "1"}
    cards = [device for device in devices if device.name.startswith(("CUDA", "MIG-"))]
    if not datacenter_tuning or not cards or not all(is_datacenter_card(card.description) for card in cards):
        return {}
    several = {PEER_ACCESS: "1", LAUNCH_QUEUES: "4x"} if len(cards) > 1 else {}
    return {FULL_PRECISION: "1", **several}
