"""Compute buffers of engines that work on several batches at once, on several GPUs (measured, b10068). Pure.

With all layers on GPUs that can wait for each other, the engine keeps four copies of what goes from device
to device: the mask of the cache and the state between layers. With one GPU, with layers in host memory or
with remote devices there is one.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.planning.memory.graph_model import micro_batch
from framework.planning.memory.kv_cells import cell_layout, window_cells
from framework.planning.memory.placement import HOST, Placement
from framework.planning.memory.settings import CacheSettings, GpuBudget
from framework.planning.memory.shape import ModelShape

# GGML_SCHED_MAX_COPIES; one is there anyway.
MORE_COPIES = 3
F32_BYTES, F16_BYTES = 4, 2
# Backends that report events, by which copies wait for each other.
WITH_EVENTS = frozenset({"cuda", "vulkan"})
SEVERAL = 2


def pipeline_bytes(
    shape: ModelShape, settings: CacheSettings, placement: Placement, gpus: Sequence[GpuBudget]
) -> dict[str, int]:
    """What the copies add on each device, host memory included; nothing where there is one copy."""
    if not is_pipelined(settings, placement, gpus):
        return {}
    tokens = micro_batch(shape, settings)
    masks = _mask_bytes(shape, settings, tokens)
    state = (shape.embedding_length or 0) * tokens * F32_BYTES
    devices = [name for name in placement.devices if name != HOST]
    sizes = {
        name: MORE_COPIES * (masks + state) + (state if place else 0) for place, name in enumerate(devices)
    }
    return {HOST: MORE_COPIES * masks, **sizes}


def is_pipelined(settings: CacheSettings, placement: Placement, gpus: Sequence[GpuBudget]) -> bool:
    """Whether the engine will keep several copies."""
    used = {gpu.name: gpu.backend for gpu in gpus if gpu.name in placement.devices}
    is_whole = HOST not in placement.layers and placement.output != HOST and not placement.cpu_experts
    able = all(backend in WITH_EVENTS for backend in used.values())
    return len(used) >= SEVERAL and is_whole and able and settings.kv_on_gpu


def _mask_bytes(shape: ModelShape, settings: CacheSettings, tokens: int) -> int:
    if not shape.cache_layers:
        return 0
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    cells = layout.cells_per_stream
    if shape.sliding_window:
        cells += window_cells(layout, shape.sliding_window, settings)
    return cells * tokens * (F16_BYTES if settings.flash_attention else F32_BYTES)
