"""Bytes of the KV cache, per layer (03 §5, as measured). Pure.

Exact for every model whose layers we know: each layer that owns a cache stores a row of keys and a row of
values per cell. Called by fit, and for a drafter by drafter.
"""

from __future__ import annotations

from framework.planning.memory.kv_cells import cell_layout, window_cells
from framework.planning.memory.settings import F16_BYTES, CacheSettings, bytes_per_element
from framework.planning.memory.shape import INDEXED, ModelShape


def kv_bytes(shape: ModelShape, settings: CacheSettings) -> int:
    """All layers together; 0 when nothing can be said."""
    return sum(kv_bytes_by_layer(shape, settings).values())


def kv_bytes_by_layer(shape: ModelShape, settings: CacheSettings) -> dict[int, int]:
    """Bytes of each layer that owns a cache."""
    if not shape.estimable or settings.n_ctx <= 0:
        return {}
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    windowed = window_cells(layout, shape.sliding_window or 0, settings)
    key_bytes = bytes_per_element(settings.key_type)
    value_bytes = _value_bytes(settings)
    sizes = {}
    for layer in shape.cache_layers:
        cells = layout.streams * (windowed if shape.is_windowed(layer) else layout.cells_per_stream)
        keys, values = row_elements(shape, layer, flash_attention=settings.flash_attention)
        sizes[layer] = int(cells * (keys * key_bytes + values * value_bytes))
    return sizes


def row_elements(shape: ModelShape, layer: int, *, flash_attention: bool) -> tuple[int, int]:
    """Elements of keys and of values that a layer stores per cell."""
    if shape.has_latent_attention:
        indexed = shape.indexer_key_length or 0 if shape.architecture in INDEXED else 0
        return (shape.n_kv_heads or 1) * shape.latent_width + indexed, 0
    values = shape.value_row(layer) if flash_attention else shape.widest_value_row
    return shape.key_row(layer), values


def _value_bytes(settings: CacheSettings) -> float:
    """Without flash attention the engine cannot quantise values, and a launch that retries so pays f16."""
    asked = bytes_per_element(settings.value_type)
    return asked if settings.flash_attention else max(asked, F16_BYTES)
