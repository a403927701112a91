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
from framework.planning.memory.compute_lines import compute_lines
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
from framework.planning.memory.weight_lines import weight_lines
from framework.values.plan import Basis, MemoryLine

# Its layers use the caches of the model that it drafts for.
BORROWS_CACHES = "gemma4-assistant"
# Whose running states llama.cpp can step back by copies of them.
STEP_BACK = frozenset({"qwen35", "qwen35moe"})


@dataclass(frozen=True)
class Drafter:
    """A separate drafter: its facts."""

    shape: ModelShape
    tensors: TensorTable


@dataclass(frozen=True)
class Beside:
    """Where the model goes that a drafter is loaded beside."""

    gpus: Sequence[GpuBudget] = ()
    split: Sequence[float] = ()
    """Share of each GPU, in layers of either."""
    is_mapped: bool = True
    """Weights in host memory are pages of the file."""
    may_repack: bool = False
    """The processor may rearrange weights in host memory."""


def rollback(draft: DraftPlan | None, architecture: str | None) -> int:
    """Tokens whose states the main context, a model of this architecture, keeps copies of."""
    if draft is None:
        return 0
    if draft.kind == "head":
        return draft.depth
    return draft.copies if architecture in STEP_BACK else 0


def drafter_lines(
    drafter: Drafter, settings: CacheSettings, draft: DraftPlan, beside: Beside
) -> list[MemoryLine]:
    """A model beside the model, wholly on the GPUs, with its layers divided as the model's are, or wholly in
    host memory. It has a context as long as the model's; one token of each slot gets logits."""
    shape, table = drafter.shape, drafter.tensors
    gpus = () if draft.on_cpu else beside.gpus
    placement = place(shape.layers, Offload(split=tuple(beside.split)), gpus)
    own = replace(_with_types(settings, draft), drafted=0)
    caches: Counter[str] = Counter()
    on_gpu = settings.kv_on_gpu
    if shape.architecture != BORROWS_CACHES:
        _add(caches, kv_bytes_by_layer(shape, own), placement, on_gpu=on_gpu)
        _add(caches, state_bytes_by_layer(shape, settings.slots), placement, on_gpu=on_gpu)
    basis: Basis = "computed" if shape.architecture in MEASURED_ARCHITECTURES else "assumed"
    return [
        *weight_lines(
            shape,
            table,
            placement,
            mapped=beside.is_mapped,
            repack=settings.repack and (beside.may_repack or not gpus),
            label="drafter_weights",
        ),
        *(MemoryLine(device, "drafter_kv", size, basis) for device, size in caches.items()),
        *compute_lines(shape, table, own, placement, gpus, label="drafter_compute"),
    ]


def _with_types(settings: CacheSettings, draft: DraftPlan) -> CacheSettings:
    """A context of its own cache types that answers nobody with vectors."""
    return replace(settings, key_type=draft.key_type, value_type=draft.value_type, embeddings=False)


def head_lines(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, draft: DraftPlan, placement: Placement
) -> list[MemoryLine]:
    """An embedded head. Its weights are loaded with the model's.

    Some architectures give it a cache for its own layers, the others a second complete one. A model without
    prediction layers has none.
    """
    if not (shape.nextn_layers and shape.layers):
        return []
    own = _with_types(settings, draft)
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


def _add(
    sizes: Counter[str], by_layer: Mapping[int, int], placement: Placement, *, on_gpu: bool = True
) -> None:
    for layer, size in by_layer.items():
        sizes[placement.device(layer) if on_gpu else HOST] += size


def _compute_lines(sizes: Mapping[str, int], basis: Basis) -> list[MemoryLine]:
    return [MemoryLine(device, "drafter_compute", size, basis) for device, size in sizes.items()]
