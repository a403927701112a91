"""Devices whose memory is the host's (04 §4.5, FM-24). Pure.

An engine lists them as it lists cards, with a free figure of their own, yet what they hold is gone for the
host as well, and the reverse. Which they are is told by the driver where there is one to ask, else by the
name of the chip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from framework.values.device import HOST_NAME, Device

# All of an integrated chip's memory is not for models: the host has to live as well.
HOST_RESERVE_BYTES = 1024 * 2**20
SOFTWARE = re.compile(r"llvmpipe|lavapipe|swiftshader", re.IGNORECASE)
INTEGRATED = re.compile(
    r"intel.*\b(?:u?hd|iris|xe)\b.*graphics|arc\(tm\) graphics"
    r"|radeon(?:\(tm\))? (?:vega \d+ )?(?:\d{3}m )?graphics|apple m\d"
    r"|radv (?:raven|renoir|cezanne|rembrandt|phoenix|raphael|vangogh|strix|gfx1103|gfx115\d)",
    re.IGNORECASE,
)


def is_unified(device: Device) -> bool:
    """Whether a device has the host's memory, as far as its names tell: chips of Apple, integrated Vulkan
    ones, and renderers in software."""
    if device.kind != "gpu":
        return False
    if device.name.startswith("MTL"):
        return True
    return device.name.startswith("Vulkan") and (is_software(device) or is_integrated(device))


def is_software(device: Device) -> bool:
    """Whether it is a processor that plays a card."""
    return SOFTWARE.search(device.description) is not None


def is_integrated(device: Device) -> bool:
    """Whether it is a graphics unit of the processor."""
    return INTEGRATED.search(device.description) is not None


def fit_view(device: Device, host_free_bytes: int) -> Device:
    """A device as plans should see it: unified memory is limited by what the host has free as well.

    Of an integrated Vulkan chip some stays with the host; its total is the whole of the host's memory and no
    measure of anything, so it counts as not known (0).
    """
    if not device.is_unified:
        return device
    free = min(device.free_bytes, host_free_bytes)
    if device.name.startswith("Vulkan") and is_integrated(device):
        return replace(device, free_bytes=max(0, free - HOST_RESERVE_BYTES), total_bytes=0)
    return replace(device, free_bytes=free)


def in_host_memory(devices: Sequence[Device]) -> frozenset[str]:
    """Names under which host memory is listed: its own, and those of devices that have none but the host's.

    One that is larger than the host has a part of its own, taken from the host when the machine was started.
    """
    host = next((device for device in devices if device.name == HOST_NAME), None)
    most = host.total_bytes if host is not None else 0
    shared = (device.name for device in devices if device.is_unified and device.total_bytes <= most)
    return frozenset((HOST_NAME, *shared))


def after_return(devices: Sequence[Device], freed: Mapping[str, int]) -> tuple[Device, ...]:
    """Devices as they will be listed once these bytes, by device, are given back."""
    names = in_host_memory(devices)
    to_host = sum(freed.get(name, 0) for name in names)

    def returned(device: Device) -> Device:
        free = device.free_bytes + (to_host if device.name in names else freed.get(device.name, 0))
        return replace(device, free_bytes=min(free, device.total_bytes or free))

    return tuple(map(returned, devices))
