"""NVIDIA cards as their driver knows them: identity, memory, work, processes, slices. Blocking; never raises.

The library that is asked (NVML) comes with the driver. Where there is none, there are no cards; what a card
does not tell is None. Holds no device context, so asking takes no GPU memory.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

log = logging.getLogger(__name__)

ENABLED = 1
# Of cards in a machine, and of slices of a card; a driver that tells of more is not believed.
MOST_CARDS = 64
TEXT_LIMIT = 120


@dataclass(frozen=True)
class CardSlice:
    """A part of a card that is used like a card of its own (MIG)."""

    uuid: str
    name: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class NvidiaCard:
    """One card, by its place on the bus."""

    index: int
    """As the driver counts all cards, which is bus order."""
    name: str
    uuid: str = ""
    bus_id: str = ""
    total_bytes: int | None = None
    """None where it has no memory of its own to tell of, as on chips that share the host's."""
    free_bytes: int | None = None
    utilisation: float | None = None
    """0 to 1."""
    used_by_pid: Mapping[int, int] = field(default_factory=dict)
    slices: tuple[CardSlice, ...] = ()


def read_nvidia_cards(library: Any = None) -> tuple[NvidiaCard, ...]:
    """All cards, those that a mask hides included, in bus order. `library` stands for NVML itself."""
    nvml = _started() if library is None else library
    if nvml is None:
        return ()
    handles = ((index, _ask(nvml, "DeviceGetHandleByIndex", index)) for index in range(_count(nvml)))
    return tuple(_card(nvml, index, handle) for index, handle in handles if handle is not None)


@cache
def _started() -> Any:
    """The library, ready to be asked; None where there is no driver. Tried once, as drivers are not loaded
    under a running manager."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.debug("no NVIDIA driver: %s", error)
        return None
    return nvml


def _count(nvml: Any) -> int:
    count = _ask(nvml, "DeviceGetCount")
    return min(count, MOST_CARDS) if isinstance(count, int) else 0


def _card(nvml: Any, index: int, handle: Any) -> NvidiaCard:
    memory = _ask(nvml, "DeviceGetMemoryInfo", handle)
    busy = getattr(_ask(nvml, "DeviceGetUtilizationRates", handle), "gpu", None)
    return NvidiaCard(
        index,
        name=_text(_ask(nvml, "DeviceGetName", handle)),
        uuid=_text(_ask(nvml, "DeviceGetUUID", handle)),
        bus_id=_text(getattr(_ask(nvml, "DeviceGetPciInfo", handle), "busId", "")),
        total_bytes=_bytes(memory, "total"),
        free_bytes=_bytes(memory, "free"),
        utilisation=min(1.0, busy / 100) if isinstance(busy, int) and busy >= 0 else None,
        used_by_pid=_processes(nvml, handle),
        slices=tuple(_slices(nvml, handle)),
    )


def _processes(nvml: Any, handle: Any) -> dict[int, int]:
    """Bytes by process; those of which the driver tells no number are left out."""
    found: dict[int, int] = {}
    for kind in ("Compute", "Graphics"):
        for process in _ask(nvml, f"DeviceGet{kind}RunningProcesses", handle) or ():
            used = _bytes(process, "usedGpuMemory")
            if used is not None:
                found[int(process.pid)] = max(used, found.get(int(process.pid), 0))
    return found


def _slices(nvml: Any, handle: Any) -> Iterator[CardSlice]:
    mode = _ask(nvml, "DeviceGetMigMode", handle)
    if not isinstance(mode, list | tuple) or mode[:1] not in ([ENABLED], (ENABLED,)):
        return
    most = _ask(nvml, "DeviceGetMaxMigDeviceCount", handle)
    for place in range(min(most, MOST_CARDS) if isinstance(most, int) else 0):
        part = _ask(nvml, "DeviceGetMigDeviceHandleByIndex", handle, place)
        if part is None:
            continue
        memory, uuid = _ask(nvml, "DeviceGetMemoryInfo", part), _text(_ask(nvml, "DeviceGetUUID", part))
        total, free = _bytes(memory, "total"), _bytes(memory, "free")
        if uuid and total is not None and free is not None:
            yield CardSlice(uuid, _text(_ask(nvml, "DeviceGetName", part)), total, min(free, total))


def _ask(nvml: Any, question: str, *about: Any) -> Any:
    """The answer of the driver; None where it has none, which is usual for single questions."""
    try:
        return getattr(nvml, f"nvml{question}")(*about)
    except (nvml.NVMLError, AttributeError, OSError) as error:
        log.debug("nvml%s: %s", question, error)
        return None


def _bytes(answer: Any, name: str) -> int | None:
    value = getattr(answer, name, None)
    return value if isinstance(value, int) and value >= 0 else None


def _text(value: Any) -> str:
    """Older libraries answer in bytes."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    return "".join(char for char in text if char.isprintable())[:TEXT_LIMIT]
