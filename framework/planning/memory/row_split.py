"""Weights cut by rows over all GPUs, everything else on the main one (GP-10). Pure.

Which device holds the caches then differs between builds; the main one is planned to hold all, which is right
or too much, never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.planning.memory.budget import with_lines
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import Hardware
from framework.values.plan import FitPlan, MemoryLine

WEIGHTS = "weights"


def main_alone(hardware: Hardware, main: int) -> Hardware:
    """The main GPU and host memory; an index that there is not is the first one's."""
    gpus = hardware.gpus
    return replace(hardware, gpus=gpus[main : main + 1] or gpus[:1])


def divided_by_rows(plan: FitPlan, hardware: Hardware, shares: Sequence[float]) -> FitPlan:
    """A plan of the main GPU alone, its weights cut over all of them: by shares, else by free memory."""
    names = [gpu.name for gpu in hardware.gpus]
    parts = [*shares, *(0.0 for _ in names)][: len(names)]
    if not sum(parts):
        parts = [float(gpu.free_bytes) for gpu in hardware.gpus]
    whole = sum(parts) or 1.0
    lines: list[MemoryLine] = []
    for line in plan.lines:
        if line.device == HOST or line.label != WEIGHTS:
            lines.append(line if line.device == HOST else replace(line, basis="assumed"))
            continue
        cut = ((name, int(line.bytes * part / whole)) for name, part in zip(names, parts, strict=True))
        lines += [replace(line, device=name, bytes=size, basis="assumed") for name, size in cut if size]
    return with_lines(plan, lines, hardware)
