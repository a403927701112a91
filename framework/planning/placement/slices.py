"""Slices of a card (MIG): a process can use one, and no other CUDA card beside it (GP-06). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framework.engines.visibility import is_slice, masked_backend
from framework.values.device import Device


def go_together(gpus: Sequence[Device]) -> bool:
    """Whether one process can use all of them."""
    cards = _cuda(gpus)
    return len(cards) <= 1 or not any(is_slice(card.uuid) for card in cards)


def usable_together(gpus: Sequence[Device], usable: Mapping[str, int]) -> tuple[Device, ...]:
    """Of several slices the roomiest, or the whole cards beside them where these give more; all others stay.

    `usable` are bytes by device.
    """
    if go_together(gpus):
        return tuple(gpus)
    cards = _cuda(gpus)
    ways = [[card for card in cards if not is_slice(card.uuid)]]
    ways += [[card] for card in cards if is_slice(card.uuid)]
    kept = max(ways, key=lambda way: sum(usable.get(card.name, 0) for card in way))
    return tuple(gpu for gpu in gpus if gpu not in cards or gpu in kept)


def _cuda(gpus: Sequence[Device]) -> list[Device]:
    return [gpu for gpu in gpus if masked_backend(gpu.name) == "cuda"]
