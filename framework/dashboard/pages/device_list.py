"""Devices and their memory as last listed. Pure; when to list again is for `device_watch`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from framework.api.answers import DevicesAnswer
from framework.dashboard.pages.device_bar import LEGEND, DeviceBar, Legend, bar_of_device, bar_of_use
from framework.values.device import Device
from framework.values.pool import DeviceUse, PoolView
from framework.values.reason import Reason

KINDS = {"gpu": "GPU", "cpu": "host memory", "rpc": "remote"}


@dataclass(frozen=True)
class DeviceRow:
    """One memory."""

    name: str
    kind: str
    description: str
    pool: str
    total_bytes: int
    free_bytes: int
    bar: DeviceBar


@dataclass(frozen=True)
class DeviceList:
    """All devices; `listed_at` None while they are being listed for the first time."""

    rows: tuple[DeviceRow, ...]
    reasons: tuple[Reason, ...]
    listed_at: datetime | None
    legend: tuple[Legend, ...] = LEGEND


def device_list_of(answer: DevicesAnswer, pools: Iterable[PoolView] = ()) -> DeviceList:
    """The devices of an answer, with what their pools know of them."""
    uses = {(pool.limits.name, use.name): use for pool in pools for use in pool.devices}
    rows = tuple(_row(device, uses.get((device.pool or "", device.name))) for device in answer.devices)
    return DeviceList(rows, answer.reasons, answer.sampled_at)


def _row(device: Device, use: DeviceUse | None) -> DeviceRow:
    return DeviceRow(
        name=device.name,
        kind=KINDS.get(device.kind, device.kind),
        description=device.description,
        pool=device.pool or "",
        total_bytes=device.total_bytes,
        free_bytes=device.free_bytes,
        bar=bar_of_device(device) if use is None else bar_of_use(use),
    )
