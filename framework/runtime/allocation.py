"""What an engine that ran out of memory asked for, read from its last lines (06 §14). Pure.

Called by failures and start_notes. Lines of an engine are hostile text: only numbers, plain device names and
addresses are taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.values.device import HOST_NAME

MIB = 1 << 20
# Longer numbers are no sizes.
ASKED = re.compile(r"allocating (\d{1,12}(?:\.\d{1,3})?) MiB on device (\d{1,3})\b")
# A remote buffer is named by the number that its server gives the device, and by the address of the server.
BUFFER = r"[A-Za-z0-9_]{1,32}(?:\[[A-Za-z0-9_.:-]{1,261}\])?"
NAMED = re.compile(rf"failed to allocate ({BUFFER}) buffer of size (\d{{1,18}})\b")
# Its MB are MiB.
HOST_REFUSED = re.compile(r"insufficient memory \(attempted to allocate +(\d{1,9}(?:\.\d{1,3})?) MB\)")
VULKAN_REFUSED = re.compile(r"ggml_vulkan: (?:Device memory|Memory) allocation of size (\d{1,18}) failed")
# What the buffer was for, as the line after the failure says.
PURPOSES = (
    ("compute buffers", re.compile(r"failed to allocate compute")),
    ("the KV cache", re.compile(r"failed to allocate buffer for kv cache")),
    ("weights", re.compile(rf"unable to allocate {BUFFER} buffer")),
)
# All of them lower-case: what lines say of memory that was not to be had.
SHORTAGE = (
    "out of memory",
    "failed to allocate",
    "unable to allocate",
    "insufficient memory (attempted to allocate",
    "cannot allocate memory",
    "erroroutofdevicememory",
    "erroroutofhostmemory",
)
# A buffer that the device takes in no piece of that size makes the engine abort with these words (15 §7).
TOO_LARGE = re.compile(
    r"pre-allocated tensor \((\w{1,64})\) in a buffer \((\w{1,32})\) that cannot run the operation"
)
# The engine's fit step leaves everything as it is where the line fixes the layers.
LAYERS_FIXED = re.compile(r"failed to fit params.*n_gpu_layers already set by user")


@dataclass(frozen=True)
class Allocation:
    """The allocation that was refused. `device` is a name, a number as in `device 0`, or an address."""

    device: str
    bytes: int
    purpose: str
    """What it was for; empty when no line says so."""


def refused_allocation(lines: Sequence[str]) -> Allocation | None:
    """The last allocation that the lines say was refused."""
    for number in range(len(lines) - 1, -1, -1):
        if found := _refused(lines, number):
            device, size = found
            return Allocation(device, size, _purpose(lines[number:]))
    return None


def was_short_of_memory(text: str) -> bool:
    """Whether the lower-cased output of a start that failed says that memory was missing."""
    return any(words in text for words in SHORTAGE)


def too_large_tensor(lines: Sequence[str]) -> tuple[str, str] | None:
    """The tensor that its device does not take in one piece, and the device."""
    return next(((found[1], found[2]) for line in lines if (found := TOO_LARGE.search(line))), None)


def fit_was_forbidden(lines: Sequence[str]) -> bool:
    """Whether the engine says that a layer count on its command line kept it from fitting the model."""
    return any(LAYERS_FIXED.search(line) for line in lines)


def _refused(lines: Sequence[str], number: int) -> tuple[str, int] | None:
    """Device and bytes of the allocation that this line says was refused."""
    line = lines[number]
    if found := ASKED.search(line):
        return f"device {found[2]}", int(float(found[1]) * MIB)
    if found := NAMED.search(line):
        before = ASKED.search(lines[number - 1]) if number else None
        return f"device {before[2]}" if before else _device(found[1]), int(found[2])
    if found := VULKAN_REFUSED.search(line):
        return "a Vulkan device", int(found[1])
    if found := HOST_REFUSED.search(line):
        return HOST_NAME, int(float(found[1]) * MIB)
    return None


def _device(buffer: str) -> str:
    """Of a remote buffer the address alone: every server counts its devices from 0."""
    _, bracket, address = buffer.partition("[")
    return address.rstrip("]") if bracket else buffer


def _purpose(lines: Sequence[str]) -> str:
    return next((name for name, told in PURPOSES if any(told.search(line) for line in lines)), "")
