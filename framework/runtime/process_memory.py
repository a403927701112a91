"""What engines' processes really hold of host memory, and of cards whose driver counts by process.

Called by runtime.memory_watch, in a thread. Never raises.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from framework.hardware.nvml import NvidiaCard, read_nvidia_cards
from framework.runtime.process_status import OWN, PROC, resident_bytes


@dataclass(frozen=True)
class Held:
    """Of one process and its helpers."""

    host_bytes: int | None
    """Memory that is no page of a file; None where the system does not tell it apart."""
    card_bytes: Mapping[str, int] = field(default_factory=dict)
    """By the UUID of the card."""


@dataclass(frozen=True)
class Look:
    """One look at everything."""

    held: Mapping[int, Held]
    """By the process that leads its group."""
    cards: Mapping[str, NvidiaCard] = field(default_factory=dict)
    """By UUID, whole cards only."""


def look(leaders: Iterable[int], proc: Path = PROC) -> Look:
    """What the groups of these processes hold now. A group that is gone is left out. Blocking."""
    groups = _groups(frozenset(leaders))
    cards = {card.uuid: card for card in read_nvidia_cards() if card.uuid and not card.slices}
    held = {
        leader: Held(
            _sum(own_bytes(pid, proc) for pid in members),
            {
                uuid: sum(card.used_by_pid.get(pid, 0) for pid in members)
                for uuid, card in cards.items()
                if card.used_by_pid
            },
        )
        for leader, members in groups.items()
    }
    return Look(held, cards)


def _groups(leaders: frozenset[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid in psutil.pids() if leaders else ():
        with contextlib.suppress(OSError):
            if (leader := os.getpgid(pid)) in leaders:
                found.setdefault(leader, []).append(pid)
    return found


def own_bytes(pid: int, proc: Path = PROC) -> int | None:
    """Memory of a process that is no page of a file; None where that is not told."""
    try:
        fields = resident_bytes(pid, proc)
    except OSError:
        return None
    return _sum(fields.get(name) for name in OWN)


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None
