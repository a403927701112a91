"""What speculation with a drafter or an embedded head takes: a second plan (03 §6, as measured). Pure.

A draft context has caches and a compute buffer of its own. Called by fit, and only for what the launch will
really engage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from framework.planning.memory.architectures import MEASURED_ARCHITECTURES
from framework.planning.memory.compute import compute_buffers, is_buildable
from framework.planning.memory.graph_head import head_graph
from framework.planning.memory.kv_cache import kv_bytes_by_layer, row_elements
from framework.planning.memory.kv_cells import cell_layout
from framework.planning.memory.placement import HOST, Placement, place
from framework.planning.memory.recurrent_state import state_bytes_by_layer
from framework.planning.memory.settings import (
    F16_BYTES,
    CacheSettings,
    DraftPlan,
    GpuBudget,
    Offload,
    bytes_per_element,
)
from framework.planning.memory.shape import DRAFT_LAYERS_APART, ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.planning.memory.weights import weights_by_device
from framework.values.plan import Basis, MemoryLine

# Its layers use the caches of the model that it drafts for.
BORROWS_CACHES = "gemma4-assistant"


@dataclass(frozen=True)
class Drafter:
    """A separate drafter: its facts."""

    shape: ModelShape
    tensors: TensorTable


def rollback(draft: DraftPlan | None) -> int:
    """Tokens whose states the main context keeps copies of; a separate drafter needs none."""
    return draft.depth if draft is not None and draft.kind == "head" else 0


def drafter_lines(
    drafter: Drafter, settings: CacheSettings, draft: DraftPlan, gpus: Sequence[GpuBudget]
) -> list[MemoryLine]:
    """A model beside the model, wholly on the GPUs or wholly in host memory."""
    shape = drafter.shape
    placement = place(shape.layers, Offload(), () if draft.on_cpu else gpus)
    own = replace(settings, key_type=draft.key_type, value_type=draft.value_type, embeddings=False)
    weights = weights_by_device(shape, drafter.tensors, placement)
    caches: Counter[str] = Counter()
    if shape.architecture != BORROWS_CACHES:
        _add(caches, kv_bytes_by_layer(shape, own), placement)
        _add(caches, state_bytes_by_layer(shape, settings.slots), placement)
    compute = compute_buffers(shape, drafter.tensors, own, placement)
    basis: Basis = "computed" if shape.architecture in MEASURED_ARCHITECTURES else "assumed"
    lines = [
        MemoryLine(device, "drafter_weights", size.plain + size.repacked, basis, mapped=device == HOST)
        for device, size in weights.items()
    ]
    lines += [MemoryLine(device, "drafter_kv", size, basis) for device, size in caches.items()]
    return lines + _compute_lines(compute.bytes_by_device, compute.basis)


def head_lines(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, draft: DraftPlan, placement: Placement
) -> list[MemoryLine]:
    """An embedded head. Its weights are loaded with the model's.

    Some architectures give it a cache for its own layers, the others a second complete one. A model without
    prediction layers has none.
    """
    if not (shape.nextn_layers and shape.layers):
        return []
    own = replace(settings, key_type=draft.key_type, value_type=draft.value_type, embeddings=False)
    caches: Counter[str] = Counter()
    if shape.architecture in DRAFT_LAYERS_APART:
        _add(caches, head_cache_bytes_by_layer(shape, own), placement)
        outputs = max(1, settings.slots)
        basis: Basis = "computed" if is_buildable(table) else "assumed"
        graph = head_graph(shape, table, own, placement, outputs)
        compute = _compute_lines(dict(zip(placement.devices, graph.buffer_bytes(), strict=True)), basis)
    else:
        _add(caches, kv_bytes_by_layer(shape, _unquantised(own)), placement)
        buffers = compute_buffers(shape, table, own, placement)
        compute = _compute_lines(buffers.bytes_by_device, buffers.basis)
    return [MemoryLine(device, "drafter_kv", size, "computed") for device, size in caches.items()] + compute


def head_cache_bytes_by_layer(shape: ModelShape, settings: CacheSettings) -> dict[int, int]:
    """Cache of the prediction layers, never below f16 (llama.cpp #24102: one layer costs more quantised)."""
    count = shape.nextn_layers or 0
    if not (count and shape.layers and settings.n_ctx > 0):
        return {}
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    key_bytes = max(F16_BYTES, bytes_per_element(settings.key_type))
    value_bytes = max(F16_BYTES, bytes_per_element(settings.value_type))
    sizes = {}
    for layer in range(max(0, shape.layers - count), shape.layers):
        keys, values = row_elements(shape, layer, flash_attention=settings.flash_attention)
        sizes[layer] = int(layout.cells * (keys * key_bytes + values * value_bytes))
    return sizes


def _unquantised(settings: CacheSettings) -> CacheSettings:
    def at_least_f16(cache_type: str) -> str:
        return cache_type if bytes_per_element(cache_type) >= F16_BYTES else "f16"

    key_type, value_type = at_least_f16(settings.key_type), at_least_f16(settings.value_type)
    return replace(settings, key_type=key_type, value_type=value_type)


def _add(sizes: Counter[str], by_layer: Mapping[int, int], placement: Placement) -> None:
    for layer, size in by_layer.items():
        sizes[placement.device(layer)] += size


def _compute_lines(sizes: Mapping[str, int], basis: Basis) -> list[MemoryLine]:
    return [MemoryLine(device, "drafter_compute", size, basis) for device, size in sizes.items()]
