"""Read from the log of a start whether the model really lies on a GPU (06 §11, 15 §7). Pure.

An engine whose GPU library cannot be loaded goes on with the processor and says nothing else about it. Called
by runtime.readback. The lines are there at the verbosity that every command line asks for; which of them are
right was observed: builds without a GPU say that they offloaded all layers, so that line can only disprove.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from framework.engines.buffers_log import HOST_BUFFER, LINE, NO_ALLOC

OFFLOADED = re.compile(r"offloaded +(\d{1,6})/(\d{1,6}) +layers? +to +gpu", re.IGNORECASE)
MODEL_BUFFER = re.compile(
    r"(?P<buffer>[^\s=]{1,200}) +model buffer size *= *(?P<mib>\d{1,9}(?:\.\d{1,3})?) MiB"
)
DEVICES_HEADING = "device_info:"
DEVICE_ROW = re.compile(
    r"- +(?P<kind>CUDA|ROCm|HIP|Metal|Vulkan|SYCL|OpenCL|MUSA|CANN|RPC|CPU)\w{0,20} *:", re.IGNORECASE
)
HOST_KIND = "cpu"
MOST_LOADS = 16
"""The model, a drafter, and what the fit step measured of each, with room to spare."""


@dataclass
class _Load:
    """One model that was loaded; of several the one with most layers is the model, the others draft."""

    layers: int = 0
    total: int = -1
    has_buffers: bool = False
    on_gpu: bool = False


@dataclass(frozen=True)
class OffloadVerdict:
    """What the lines say."""

    on_gpu: bool | None
    """None where they do not say."""
    saw_gpu: bool = False
    """The engine listed one, so that its library could be loaded."""


def offload_verdict(lines: Iterable[str]) -> OffloadVerdict:
    """Whether weights of the model lie on a GPU, from the lines of one start."""
    loads = [_Load()]
    kinds: list[str] = []
    measuring = listing = False
    for line in lines:
        found = LINE.match(line)
        source, text = (found["source"], found["text"]) if found else ("", line.strip())
        if begins := NO_ALLOC.match(text):
            measuring = begins["on"] == "1"
        elif DEVICES_HEADING in (text, f"{source}:"):
            listing = True
        elif listing and (row := DEVICE_ROW.match(text)):
            kinds.append(row["kind"].lower())
        elif (offloaded := OFFLOADED.fullmatch(text)) and len(loads) < MOST_LOADS and not measuring:
            loads.append(_Load(int(offloaded[1]), int(offloaded[2])))
        elif (buffer := MODEL_BUFFER.fullmatch(text)) and not measuring:
            loads[-1].has_buffers = True
            loads[-1].on_gpu |= _holds(buffer)
    saw_gpu = any(kind != HOST_KIND for kind in kinds)
    return OffloadVerdict(_of_load(loads, nothing_listed=bool(kinds) and not saw_gpu), saw_gpu)


def _of_load(loads: list[_Load], *, nothing_listed: bool) -> bool | None:
    model = max(loads, key=lambda load: (load.total, load.layers))
    if model.has_buffers:
        return model.on_gpu
    if loads[0].has_buffers:  # printed before the count, as some builds have it
        return loads[0].on_gpu
    # A count of nothing, or a list of devices without a GPU, disproves; neither proves anything.
    return False if model.layers == 0 <= model.total or nothing_listed else None


def _holds(buffer: re.Match[str]) -> bool:
    return float(buffer["mib"]) > 0 and not HOST_BUFFER.fullmatch(buffer["buffer"])
