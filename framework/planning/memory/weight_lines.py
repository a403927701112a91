"""Weights of a model, or of its drafter, as lines of a plan. Pure; called by fit and drafter."""

from __future__ import annotations

from framework.planning.memory.placement import HOST, Placement
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory.weights import weights_by_device
from framework.values.plan import Basis, MemoryLine

WEIGHTS = "weights"


def weight_lines(
    shape: ModelShape,
    table: TensorTable,
    placement: Placement,
    *,
    mapped: bool,
    repack: bool,
    label: str = WEIGHTS,
) -> list[MemoryLine]:
    """Weights on each device. Those in host memory are pages of the file where it is `mapped`, unless they
    are rearranged, which the processor may do where `repack` lets it."""
    basis: Basis = "computed" if table.is_complete else "assumed"
    lines = []
    for device, size in weights_by_device(shape, table, placement).items():
        rearranged = size.repacked if device == HOST and repack else 0
        plain = size.plain + size.repacked - rearranged
        lines.append(MemoryLine(device, label, plain, basis, mapped=device == HOST and mapped))
        if rearranged:  # which types, depends on the CPU
            lines.append(MemoryLine(device, label, rearranged, "assumed"))
    return [line for line in lines if line.bytes]
