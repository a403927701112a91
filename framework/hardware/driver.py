"""What the drivers of this machine know about its cards, beyond what an engine lists. Blocking; never raises.

Called with every device list. Both sources are optional: a machine has one of them, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from framework.hardware.amd import AmdCard, read_amd_cards
from framework.hardware.nvml import NvidiaCard, read_nvidia_cards

# Each is there exactly when a driver for computing is loaded, whatever else is installed.
DRIVER_SIGNS = {
    "the NVIDIA driver": Path("/proc/driver/nvidia/version"),
    "the AMD driver (kfd)": Path("/dev/kfd"),
    "the GPU of the Windows host": Path("/dev/dxg"),
}


@dataclass(frozen=True)
class DriverFacts:
    """Cards in bus order."""

    nvidia: tuple[NvidiaCard, ...] = ()
    amd: tuple[AmdCard, ...] = ()


def read_driver() -> DriverFacts:
    """What is known now."""
    return DriverFacts(read_nvidia_cards(), read_amd_cards())


def loaded_driver() -> str:
    """What says that this machine has a GPU; empty where nothing does."""
    return next((name for name, sign in DRIVER_SIGNS.items() if sign.exists()), "")
