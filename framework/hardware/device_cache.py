"""Device lists for planning, shared by starts that come together.

Called by runtime.planner. What is free changes with every load, so a list holds for a few seconds only; that
a binary sees no GPU, or cannot say, stays so for a minute. Host memory is looked up afresh each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from framework.hardware.devices import DeviceList, host_memory, list_devices
from framework.values.device import HOST_NAME
from framework.values.engine import EngineBinary

FRESH_S = 3.0
WITHOUT_GPUS_S = 60.0
# Pairs of engine and environment; nobody has more in use at once.
MOST_ENTRIES = 64


@dataclass
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    found: DeviceList | None = None
    until_s: float = 0.0


class DeviceCache:
    """Device lists of this process. Belongs to one event loop."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[object, _Entry] = {}

    async def get(
        self, binary: EngineBinary, environ: Mapping[str, str], *, rpc: tuple[str, ...] = ()
    ) -> DeviceList:
        """What `list_devices` says now or said just now. Never raises; callers that come together share."""
        entry = self._entry((binary.file, rpc, frozenset(environ.items())))
        async with entry.lock:
            if entry.found is None or self._clock() >= entry.until_s:
                await self._fill(entry, binary, environ, rpc)
            return _with_host_memory(entry.found)

    async def get_anew(self, binary: EngineBinary, environ: Mapping[str, str]) -> DeviceList:
        """What `list_devices` says now; whoever asks next is spared the question."""
        entry = self._entry((binary.file, (), frozenset(environ.items())))
        async with entry.lock:
            await self._fill(entry, binary, environ, ())
            return _with_host_memory(entry.found)

    async def _fill(
        self, entry: _Entry, binary: EngineBinary, environ: Mapping[str, str], rpc: tuple[str, ...]
    ) -> None:
        entry.found = await list_devices(binary, environ, rpc=rpc)
        entry.until_s = self._clock() + _lasts_s(entry.found)

    def _entry(self, key: object) -> _Entry:
        if key not in self._entries and len(self._entries) >= MOST_ENTRIES:
            self._entries = {k: entry for k, entry in self._entries.items() if entry.lock.locked()}
        return self._entries.setdefault(key, _Entry())


def _with_host_memory(found: DeviceList | None) -> DeviceList:
    """Host memory as it is now, in place of what was remembered."""
    known = found or DeviceList(())
    gpus = tuple(device for device in known.devices if device.name != HOST_NAME)
    return DeviceList((*gpus, host_memory()), known.reasons)


def _lasts_s(found: DeviceList) -> float:
    """Without a GPU there is nothing that changes: neither where there is none, nor where asking failed."""
    has_gpus = any(device.kind != "cpu" for device in found.devices)
    return FRESH_S if has_gpus else WITHOUT_GPUS_S
