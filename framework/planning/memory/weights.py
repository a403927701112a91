"""Bytes of weights per device (measured rules). Pure.

Exact for what the engine loads: layers go to their device, everything that turns tokens into numbers stays in
host memory, and an output that shares its matrix with the embedding is a second copy of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from framework.planning.memory.placement import HOST, Placement
from framework.planning.memory.shape import (
    DRAFT_LAYERS_APART,
    OUTPUT_IN_HOST_MEMORY,
    WITHOUT_OUTPUT,
    ModelShape,
)
from framework.planning.memory.tensor_table import LOOKED_UP, Bytes, TensorTable

# LFM2 uses this name for the norm before the output.
EMBEDDING_NORM = ("token_embd_norm.weight", "token_embd_norm.bias")
NORM_AT_THE_END = frozenset({"lfm2", "lfm2moe"})
# Shared by all layers, and loaded with the first one.
WITH_FIRST_LAYER = ("rope_f", "per_layer_model_proj.", "per_layer_proj_norm.")
TIED = "token_embd.weight"
OUTPUT = "output.weight"
# Where the output is always the embedding matrix, the engine keeps a second copy even in host memory.
TWICE_IN_HOST_MEMORY = frozenset({"gemma3n", "gemma4"})


def weights_by_device(shape: ModelShape, table: TensorTable, placement: Placement) -> Mapping[str, Bytes]:
    """What each device loads; in host memory some of it may be rearranged."""
    sizes: defaultdict[str, Bytes] = defaultdict(Bytes)
    for number, layer in enumerate(table.layers):
        if is_skipped(shape, number):
            continue
        sizes[placement.device(number)] += layer.weights
        sizes[HOST if number < placement.cpu_experts else placement.device(number)] += layer.experts
    for name, (_, size) in table.outside.items():
        sizes[_outside_layers(shape, name, placement)] += size
    if OUTPUT not in table.outside and TIED in table.outside and not _shares_matrix(shape, placement):
        sizes[placement.output] += table.outside[TIED][1]
    return sizes


def largest_host_matrix_bytes(shape: ModelShape, table: TensorTable, placement: Placement) -> int:
    """The largest matrix of a layer that stays in host memory."""
    largest = 0
    for number, layer in enumerate(table.layers):
        if is_skipped(shape, number):
            continue
        is_on_host = placement.device(number) == HOST
        if is_on_host:
            largest = max(largest, layer.largest_weight_bytes)
        if is_on_host or number < placement.cpu_experts:
            largest = max(largest, layer.largest_expert_bytes)
    return largest


def is_skipped(shape: ModelShape, layer: int) -> bool:
    """Prediction layers that the main context does not use; some architectures load them all the same."""
    first_draft_layer = shape.layers - (shape.nextn_layers or 0)
    return layer >= first_draft_layer and shape.architecture not in DRAFT_LAYERS_APART


def _outside_layers(shape: ModelShape, name: str, placement: Placement) -> str:
    if name in LOOKED_UP or (name in EMBEDDING_NORM and shape.architecture not in NORM_AT_THE_END):
        return HOST
    if name.startswith(WITH_FIRST_LAYER):
        return placement.device(0)
    return placement.output


def _shares_matrix(shape: ModelShape, placement: Placement) -> bool:
    """Whether one copy does: there is no output, or it is in host memory."""
    if shape.architecture in WITHOUT_OUTPUT | OUTPUT_IN_HOST_MEMORY:
        return True
    return placement.output == HOST and shape.architecture not in TWICE_IN_HOST_MEMORY
