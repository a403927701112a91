"""Read the answer of `--list-devices` (15 §9). Pure; called by devices."""

from __future__ import annotations

import re
from typing import Literal

from framework.values.device import Device

MIB = 2**20
# A rack full of devices is some dozens; more lines than this are no device list.
DEVICE_LIMIT = 256
DESCRIPTION_LIMIT = 120
# Names and drivers' descriptions hold blanks, commas and parentheses, so a line is read from the right.
LINE = re.compile(
    r"\s+(?P<name>[A-Za-z][\w.-]{0,63}): (?P<about>.*) "
    r"\((?P<total>\d{1,9}) MiB, (?P<free>\d{1,9}) MiB free\)\s*"
)
# Listed by some builds, but host memory under another name.
HOST_BACKENDS = re.compile(r"(?:CPU|BLAS|ACCEL)\d*", re.IGNORECASE)


def parse_device_list(text: str) -> tuple[Device, ...]:
    """Devices in the order of the list; of equal names the first. Lines of any other form are passed over."""
    devices: dict[str, Device] = {}
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match is None or HOST_BACKENDS.fullmatch(match["name"]):
            continue
        if len(devices) == DEVICE_LIMIT:
            break
        devices.setdefault(match["name"], _device(match))
    return tuple(devices.values())


def _device(match: re.Match[str]) -> Device:
    total = int(match["total"]) * MIB
    kind: Literal["gpu", "rpc"] = "rpc" if match["name"].startswith("RPC") else "gpu"
    about = "".join(char for char in match["about"] if char.isprintable())
    return Device(
        name=match["name"],
        kind=kind,
        total_bytes=total,
        free_bytes=min(int(match["free"]) * MIB, total),
        description=about[:DESCRIPTION_LIMIT].strip(),
    )
