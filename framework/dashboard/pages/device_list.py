"""Devices and their memory as last listed. Pure; when to list again is for `device_watch`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.dashboard.formats import share
from framework.values.device import Device
from framework.values.reason import Reason

KINDS = {"gpu": "GPU", "cpu": "host memory", "rpc": "remote"}


@dataclass(frozen=True)
class DeviceRow:
    """One memory. `used_share` is the fraction of it that is taken, by whomever."""

    name: str
    kind: str
    description: str
    pool: str
    total_bytes: int
    free_bytes: int
    used_share: float


@dataclass(frozen=True)
class DeviceList:
    """All devices; `listed_at` None while they are being listed for the first time."""

    rows: tuple[DeviceRow, ...]
    reasons: tuple[Reason, ...]
    listed_at: datetime | None


def device_list_of(answer: DevicesAnswer) -> DeviceList:
    """The devices of an answer."""
    return DeviceList(tuple(_row(device) for device in answer.devices), answer.reasons, answer.sampled_at)


def _row(device: Device) -> DeviceRow:
    used = share(device.total_bytes - device.free_bytes, device.total_bytes)
    return DeviceRow(
        name=device.name,
        kind=KINDS.get(device.kind, device.kind),
        description=device.description,
        pool=device.pool or "",
        total_bytes=device.total_bytes,
        free_bytes=device.free_bytes,
        used_share=used,
    )
