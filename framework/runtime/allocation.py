"""What an engine that ran out of memory asked for, read from its last lines (06 §14). Pure.

Called by failures. Lines of an engine are hostile text: only numbers and plain device names are taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MIB = 1 << 20
# Longer numbers are no sizes.
ASKED = re.compile(r"allocating (\d{1,12}(?:\.\d{1,3})?) MiB on device (\d{1,3})\b")
NAMED = re.compile(r"failed to allocate ([A-Za-z0-9_]{1,32}) buffer of size (\d{1,18})\b")
# What the buffer was for, as the line after the failure says.
PURPOSES = (
    ("compute buffers", re.compile(r"failed to allocate compute")),
    ("the KV cache", re.compile(r"failed to allocate buffer for kv cache")),
    ("weights", re.compile(r"unable to allocate [A-Za-z0-9_]{1,32} buffer")),
)
# The engine's fit step leaves everything as it is where the line fixes the layers.
LAYERS_FIXED = re.compile(r"failed to fit params.*n_gpu_layers already set by user")


@dataclass(frozen=True)
class Allocation:
    """The allocation that was refused. `device` is the engine's name, or its number as `device 0`."""

    device: str
    bytes: int
    purpose: str
    """What it was for; empty when no line says so."""


def refused_allocation(lines: Sequence[str]) -> Allocation | None:
    """The last allocation that the lines say was refused."""
    for number in range(len(lines) - 1, -1, -1):
        if found := ASKED.search(lines[number]):
            size = int(float(found[1]) * MIB)
            return Allocation(f"device {found[2]}", size, _purpose(lines[number:]))
        if found := NAMED.search(lines[number]):
            before = ASKED.search(lines[number - 1]) if number else None
            device = f"device {before[2]}" if before else found[1]
            return Allocation(device, int(found[2]), _purpose(lines[number:]))
    return None


def fit_was_forbidden(lines: Sequence[str]) -> bool:
    """Whether the engine says that a layer count on its command line kept it from fitting the model."""
    return any(LAYERS_FIXED.search(line) for line in lines)


def _purpose(lines: Sequence[str]) -> str:
    return next((name for name, told in PURPOSES if any(told.search(line) for line in lines)), "")
