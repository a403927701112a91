"""Compute and output buffers of one context as lines of a plan: that of a model, or of its drafter. Pure.

Called by fit and drafter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framework.planning.memory.compute import compute_buffers, output_bytes, quantised_cache_scratch
from framework.planning.memory.pipeline import pipeline_bytes
from framework.planning.memory.placement import HOST, Placement
from framework.planning.memory.settings import CacheSettings, GpuBudget
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory.weights import largest_host_matrix_bytes
from framework.values.plan import Basis, MemoryLine

# Backends that multiply large batches by matrices of host memory themselves, and make room for one of them at
# a time in the compute buffer of the first GPU. From public source, not measured.
BORROWS_MATRICES = frozenset({"cuda", "vulkan"})
COMPUTE, OUTPUT = "compute", "output"


def compute_lines(
    shape: ModelShape,
    table: TensorTable,
    settings: CacheSettings,
    placement: Placement,
    gpus: Sequence[GpuBudget],
    *,
    label: str = COMPUTE,
) -> list[MemoryLine]:
    """Buffers of a context on each device, by `label`, and the room for its logits in host memory."""
    buffers = compute_buffers(shape, table, settings, placement)
    backends: Mapping[str, str] = {gpu.name: gpu.backend for gpu in gpus}
    first = next((name for name in placement.devices if name != HOST), None)
    lines = []
    copies = pipeline_bytes(shape, settings, placement, gpus)
    for device, one in buffers.bytes_by_device.items():
        size = one + copies.get(device, 0)
        basis: Basis = buffers.basis if settings.kv_on_gpu else "assumed"
        scratch = quantised_cache_scratch(shape, settings) if backends.get(device) == "cuda" else 0
        if device == first and backends.get(device) in BORROWS_MATRICES:
            scratch += largest_host_matrix_bytes(shape, table, placement)
        lines.append(MemoryLine(device, label, size + scratch, "assumed" if scratch else basis))
    output = output_bytes(shape, settings)
    return [*lines, MemoryLine(HOST, OUTPUT, output, "computed")] if output else lines
