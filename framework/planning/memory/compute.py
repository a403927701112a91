"""Compute and output buffers per device (measured rules). Pure.

The engine's own graph is rebuilt from the tensor directory and its allocation replayed. Where the directory
holds nothing that we can build from, the plain formulas of 03 have to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framework.planning.memory.architectures import MEASURED_ARCHITECTURES
from framework.planning.memory.graph_model import micro_batch, model_graph
from framework.planning.memory.kv_cache import row_elements
from framework.planning.memory.kv_cells import cell_layout, window_cells
from framework.planning.memory.placement import Placement
from framework.planning.memory.plain_compute import plain_compute_bytes
from framework.planning.memory.settings import F16_BYTES, CacheSettings
from framework.planning.memory.shape import INDEXED, WITHOUT_MEMORY, ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.values.plan import Basis

F32_BYTES = 4
# Added to what was never compared with the engine. Encoder-decoders are among them: their largest moment is
# not known.
ASSUMED_MARGIN_BYTES = 12 << 20
BUFFERS_REMEMBERED = 256
# A layer has to have one of these for its operations to be known.
BUILDABLE = ("attn_output", "attn_o", "ssm_out", "shortconv.conv", "time_mix_output")


@dataclass(frozen=True)
class ComputeBuffers:
    """Bytes by device, and how well they are known."""

    bytes_by_device: Mapping[str, int]
    basis: Basis


def compute_buffers(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, placement: Placement
) -> ComputeBuffers:
    """Compute buffers of the main context."""
    if not is_buildable(table):
        size = plain_compute_bytes(shape, settings)
        return ComputeBuffers(dict.fromkeys(placement.devices, size), "assumed")
    found = _buffer_bytes(shape, table, settings, placement)
    is_measured = shape.architecture in MEASURED_ARCHITECTURES
    margin = 0 if is_measured else ASSUMED_MARGIN_BYTES
    indexer = _indexer_bytes(shape, settings, placement)
    sizes = {
        device: size + margin + (indexer if device in placement.layers else 0)
        for device, size in zip(placement.devices, found, strict=True)
    }
    return ComputeBuffers(sizes, "computed" if is_measured else "assumed")


def _indexer_bytes(shape: ModelShape, settings: CacheSettings, placement: Placement) -> int:
    """What an indexer computes is not built. Mostly there is room for it where experts are multiplied; where
    they are not, there are the scores of all cells and their order."""
    if shape.architecture not in INDEXED:
        return 0
    if not placement.cpu_experts:
        return ASSUMED_MARGIN_BYTES
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    return 2 * F32_BYTES * layout.cells_per_stream * micro_batch(shape, settings)


def _buffer_bytes(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, placement: Placement
) -> tuple[int, ...]:
    """Of each device. At every edit of a manifest all models are planned anew, and most have not changed."""
    known = (shape, settings, placement)
    found = table.buffers.get(known)
    if found is None:
        graph = model_graph(shape, table, settings, placement, output_tokens(shape, settings))
        found = tuple(graph.buffer_bytes())
        if len(table.buffers) >= BUFFERS_REMEMBERED:
            table.buffers.clear()
        table.buffers[known] = found
    return found


def is_buildable(table: TensorTable) -> bool:
    """Whether the directory shows operations that we know."""
    return any(layer.has(name) for layer in table.layers for name in BUILDABLE)


def output_tokens(shape: ModelShape, settings: CacheSettings) -> int:
    """Tokens whose logits the server reserves room for: one per slot and what is drafted for it, or all of
    them for vectors of a model that has an output."""
    if settings.embeddings and shape.architecture not in WITHOUT_MEMORY:
        return micro_batch(shape, settings)
    return min(max(1, settings.slots) * (1 + settings.drafted), settings.batch)


def output_bytes(shape: ModelShape, settings: CacheSettings) -> int:
    """Logits, and vectors where they are asked for, in host memory. The engine's own table leaves them
    out.
    """
    width = (shape.vocab_size or 0) + (shape.embedding_length or 0 if settings.embeddings else 0)
    return F32_BYTES * width * max(1, settings.slots)


def quantised_cache_scratch(shape: ModelShape, settings: CacheSettings) -> int:
    """What CUDA adds to a compute buffer: one layer's keys and values as f16. From public source, not
    measured.
    """
    both = (settings.key_type, settings.value_type)
    if not settings.flash_attention or all(cache_type == "f16" for cache_type in both):
        return 0
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    windowed = window_cells(layout, shape.sliding_window or 0, settings)
    widest = 0
    for layer in shape.cache_layers:
        cells = layout.streams * (windowed if shape.is_windowed(layer) else layout.cells_per_stream)
        widest = max(widest, cells * sum(row_elements(shape, layer, flash_attention=True)))
    return int(widest * F16_BYTES)
