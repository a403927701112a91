"""What an engine lists, joined with what the drivers know of the same cards. Pure; called by devices.

Fills identity, utilisation, processes and architecture; puts slices in place of the card they are of; says
which devices are one card behind two runtimes. The engine's list stays the truth about what is usable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from framework.engines.tuning import is_shared_memory_chip
from framework.engines.visibility import Mask, inherited_mask, place_of
from framework.hardware.amd import AmdCard
from framework.hardware.driver import DriverFacts
from framework.hardware.nvml import CardSlice, NvidiaCard
from framework.hardware.unified import is_unified
from framework.values.device import Device
from framework.values.reason import Reason

# Runtimes take different parts of a card's memory off its total before they tell it.
ALIKE_SHARE = 0.1
# Of one card behind several runtimes the first of these is used.
PREFERRED = ("CUDA", "ROCm", "MUSA", "SYCL", "Vulkan")
IN_BRACKETS = re.compile(r"\([^()]*\)")


def with_card_facts(
    devices: Sequence[Device], driver: DriverFacts, environ: Mapping[str, str], host: Device
) -> tuple[tuple[Device, ...], tuple[Reason, ...]]:
    """The devices of a listing with all that is known about them, and what had to be assumed."""
    nvidia, amd = inherited_mask(environ, "cuda"), inherited_mask(environ, "rocm")
    described = [_described(device, driver, nvidia, amd, host) for device in devices]
    described = _with_slices(described, driver.nvidia, nvidia)
    marked = _with_twins(described)
    reasons = [_shares_memory(device) for device in marked if device.is_unified and _is_cuda(device)]
    reasons += [_assumed_same(device) for device in marked if device.same_as]
    return tuple(marked), tuple(reasons)


def _described(device: Device, driver: DriverFacts, nvidia: Mask, amd: Mask, host: Device) -> Device:
    if _is_cuda(device):
        device = _with_nvidia(device, _nvidia_card(device, driver.nvidia, nvidia))
    elif device.name.startswith("ROCm"):
        device = _with_amd(device, _amd_card(device, driver.amd, amd))
    elif is_unified(device):
        device = replace(device, is_unified=True)
    if device.total_bytes == 0 and device.kind == "gpu":
        # It has no memory to tell of, as on chips that share the host's; it is there all the same (GP-04).
        return replace(device, is_unified=True, total_bytes=host.total_bytes, free_bytes=host.free_bytes)
    return device


def _nvidia_card(device: Device, cards: Sequence[NvidiaCard], mask: Mask) -> NvidiaCard | None:
    place = place_of(device.name)
    if mask.kind == "opaque":
        token = mask.tokens[place] if 0 <= place < len(mask.tokens) else ""
        return next((card for card in cards if token and card.uuid.startswith(token)), None)
    index = mask.physical(place)
    card = next((card for card in cards if card.index == index), None)
    if card is None or _is_alike(device, card):
        return card
    # Counted otherwise than the driver counts: only a card that there is once can be told.
    alike = [card for card in cards if card.name == device.description and _is_alike(device, card)]
    return alike[0] if len(alike) == 1 else None


def _is_alike(device: Device, card: NvidiaCard) -> bool:
    """Whether card and device may be one, by size; a slice is smaller than its card."""
    if card.total_bytes is None or device.total_bytes == 0 or card.slices:
        return True
    return _is_near(device.total_bytes, card.total_bytes)


def _with_nvidia(device: Device, card: NvidiaCard | None) -> Device:
    if card is None:
        return device
    return replace(
        device,
        uuid=card.uuid,
        bus_id=card.bus_id,
        utilisation=card.utilisation,
        used_by_pid=card.used_by_pid,
        is_unified=card.total_bytes is None,
    )


def _amd_card(device: Device, cards: Sequence[AmdCard], mask: Mask) -> AmdCard | None:
    if mask.kind == "opaque":
        return None
    ordinal = mask.physical(place_of(device.name))
    return next((card for card in cards if card.ordinal == ordinal), None)


def _with_amd(device: Device, card: AmdCard | None) -> Device:
    if card is None:
        return device
    return replace(
        device,
        architecture=card.architecture,
        bus_id=card.bus_id,
        utilisation=card.utilisation,
        is_unified=is_shared_memory_chip(card.architecture),
    )


def _with_slices(devices: Sequence[Device], cards: Sequence[NvidiaCard], mask: Mask) -> list[Device]:
    """Slices in place of their cards (GP-06): CUDA shows a process only one of them, the first it may see."""
    cut = {card.uuid: card for card in cards if card.slices}
    others = [device for device in devices if device.uuid not in cut and not _is_slice(device, cards)]
    if len(others) == len(devices):
        return list(devices)
    first = next(place for place, device in enumerate(devices) if device not in others)
    slices = [
        _slice_device(part, card)
        for card in cut.values()
        for part in card.slices
        if _may_see(part, card, mask)
    ]
    return [*devices[:first], *slices, *(device for device in devices[first:] if device in others)]


def _is_slice(device: Device, cards: Sequence[NvidiaCard]) -> bool:
    return _is_cuda(device) and "MIG" in device.description and any(card.slices for card in cards)


def _slice_device(part: CardSlice, card: NvidiaCard) -> Device:
    return Device(
        name=part.uuid,
        kind="gpu",
        total_bytes=part.total_bytes,
        free_bytes=part.free_bytes,
        description=part.name or f"slice of {card.name}",
        uuid=part.uuid,
        bus_id=card.bus_id,
    )


def _may_see(part: CardSlice, card: NvidiaCard, mask: Mask) -> bool:
    if mask.kind == "opaque":
        return any(part.uuid.startswith(token) or card.uuid.startswith(token) for token in mask.tokens)
    return mask.kind == "none" or card.index in mask.ids


def _with_twins(devices: Sequence[Device]) -> list[Device]:
    """Devices of a second runtime, marked where they look like a card of a better one (GP-03)."""
    marked: list[Device] = []
    taken: set[str] = set()
    for device in sorted(devices, key=_rank):
        twin = _twin(device, (one for one in marked if one.name not in taken))
        if twin is not None:
            taken.add(twin.name)
        marked.append(device if twin is None else replace(device, same_as=twin.name))
    known = {device.name: device for device in marked}
    return [known[device.name] for device in devices]


def _twin(device: Device, better: Iterable[Device]) -> Device | None:
    return next((one for one in better if _rank(one) < _rank(device) and _is_same_card(one, device)), None)


def _is_same_card(one: Device, other: Device) -> bool:
    """By place on the bus where both tell it, else by name and size."""
    if one.bus_id and other.bus_id:
        return one.bus_id == other.bus_id
    same_name = _bare(one.description) == _bare(other.description) != ""
    return same_name and _is_near(one.total_bytes, other.total_bytes)


def _rank(device: Device) -> int:
    return next((n for n, start in enumerate(PREFERRED) if device.name.startswith(start)), len(PREFERRED))


def _bare(description: str) -> str:
    """The name of a card without what a driver adds in brackets."""
    return IN_BRACKETS.sub("", description).strip().lower()


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= ALIKE_SHARE * max(one, other)


def _is_cuda(device: Device) -> bool:
    return device.name.startswith("CUDA")


def _shares_memory(device: Device) -> Reason:
    return Reason(
        "unified_memory",
        f"{device.name} ({device.description}) shares the host's memory: what is planned on it is limited by"
        " what both have free.",
        "",
        "info",
        {"device": device.name, "total_bytes": device.total_bytes, "free_bytes": device.free_bytes},
    )


def _assumed_same(device: Device) -> Reason:
    return Reason(
        "same_card_assumed",
        f"{device.name} and {device.same_as} look like one card, which is counted once, as {device.same_as}.",
        f"If they are two cards, name {device.name} in a pool.",
        "info",
        {"device": device.name, "same_as": device.same_as},
    )
