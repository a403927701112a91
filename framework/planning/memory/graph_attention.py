"""Operations of attention, in the engine's order (measured rules). Pure.

Takes the normed input of a layer and returns what is added to the residual; the output matrix is a function
of its own, since other operations come before it in some models.
"""

from __future__ import annotations

from framework.planning.memory.graph_attend import (
    attend,
    attend_directly,
    positioned,
    rotation_of,
    store,
    turned,
)
from framework.planning.memory.graph_build import GraphBuild
from framework.planning.memory.graph_latent import latent_attention, unpacked_attention
from framework.planning.memory.shape import ATTENDS_DIRECTLY, REPEATS_KEYS
from framework.planning.memory.tensor_table import LayerTensors

NORMS_VALUES = frozenset({"gemma3n", "gemma4"})
# Its values leave the product of all three as a copy.
COPIES_VALUES = frozenset({"openelm"})
GATE = "attn_gate"

Projections = tuple[int, int | None, int | None, int | None]
"""Queries, keys, values and gate; keys and values are None where a layer uses the cache of another one."""


def heads_of(build: GraphBuild, tensors: LayerTensors, layer: int) -> int:
    """Query heads of a layer."""
    shape = build.shape
    return _query_width(build, tensors, layer) // max(
        1, shape.key_row(layer) // max(1, shape.kv_heads(layer))
    )


def attention(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int) -> int:
    """Attention up to its output matrix, which is left to `attention_output`."""
    shape = build.shape
    if tensors.has("attn_kv_a_mqa"):
        packed = shape.has_latent_attention or not tensors.has("attn_kv_b")
        return (latent_attention if packed else unpacked_attention)(build, normed, tensors, layer)
    heads = heads_of(build, tensors, layer)
    queries = _query_width(build, tensors, layer)
    if tensors.has("attn_qkv"):
        made = _fused(build, normed, tensors, layer, queries)
    else:
        made = _separate(build, normed, tensors, layer, queries)
    query, key, value, gate = made
    if shape.architecture in ATTENDS_DIRECTLY:
        return attend_directly(build, query, key, value, layer, heads)
    cache = build.cache_of(layer)
    store(build, cache, key, value)
    seen = attend(build, cache, query, layer, heads)
    if not is_gated(build, tensors, layer):
        return seen
    seen = _turned_back(build, seen, tensors, layer)
    if gate is None:
        return _gated(build, seen, normed, tensors)
    opened = build.plain(queries, gate)
    if shape.architecture in REPEATS_KEYS:
        opened = build.graph.view(opened)
    return build.plain(queries, seen, opened, overwrites=True)


def attention_output(build: GraphBuild, seen: int, tensors: LayerTensors, layer: int) -> int:
    """What is added to the residual: turned back where values were rotated, and through the output matrix."""
    if not is_gated(build, tensors, layer):
        seen = _turned_back(build, seen, tensors, layer)
    if tensors.has("attn_sub_norm"):
        width = tensors.row_length("attn_output")
        seen = build.weighted(width, build.plain(width, seen), overwrites=True)
    return build.weighted(build.embedding, seen)


def is_gated(build: GraphBuild, tensors: LayerTensors, layer: int) -> bool:
    """Whether what a layer sees is let through by a gate, of its own or made by the queries' matrix."""
    return tensors.has(GATE) or tensors.rows("attn_q") == 2 * _query_width(build, tensors, layer)


def _gated(build: GraphBuild, seen: int, normed: int, tensors: LayerTensors) -> int:
    """Through a gate of its own, as wide as what is seen or one number per head."""
    gate = build.weighted(tensors.rows(GATE), normed)
    return build.plain(tensors.row_length("attn_output"), seen, gate, overwrites=True)


def _turned_back(build: GraphBuild, seen: int, tensors: LayerTensors, layer: int) -> int:
    rotation = rotation_of(build, layer, value=True)
    if rotation is None:
        return seen
    return build.graph.view(build.plain(tensors.row_length("attn_output"), build.graph.view(seen), rotation))


def _query_width(build: GraphBuild, tensors: LayerTensors, layer: int) -> int:
    """Elements of the queries of one token. The output matrix takes as many heads, as wide as values."""
    shape = build.shape
    kv_heads = max(1, shape.kv_heads(layer))
    value_width = max(1, shape.value_row(layer) // kv_heads)
    heads = tensors.row_length("attn_output") // value_width or shape.n_heads or 1
    return heads * (shape.key_row(layer) // kv_heads)


def _separate(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int, queries: int) -> Projections:
    """From matrices of their own."""
    shape = build.shape
    made = build.weighted(tensors.rows("attn_q"), normed)
    gate: int | None = None
    if tensors.rows("attn_q") == 2 * queries:  # the second half opens and closes the first
        gate = build.graph.part(made, build.bytes_of(queries))
        query = build.plain(queries, build.graph.part(made, build.bytes_of(queries)))
    else:
        query = positioned(build, queries, build.graph.view(made), tensors, layer)
    query = turned(build, queries, query, rotation_of(build, layer, value=False))
    if not shape.owns_cache(layer) and shape.architecture not in ATTENDS_DIRECTLY:
        return query, None, None, gate

    product: int | None = None

    def key() -> int:
        nonlocal product
        made = product = build.graph.view(build.weighted(shape.key_row(layer), normed))
        return turned(
            build,
            shape.key_row(layer),
            positioned(build, shape.key_row(layer), made, tensors, layer),
            rotation_of(build, layer, value=False),
        )

    def value() -> int:
        if product is not None and not tensors.has("attn_v"):  # values are what keys were made of
            made = product
        else:
            made = build.graph.view(build.weighted(shape.value_row(layer), normed))
        if shape.architecture in NORMS_VALUES:
            made = build.plain(shape.value_row(layer), made)
        return turned(build, shape.value_row(layer), made, rotation_of(build, layer, value=True))

    if _values_last(build):
        keys = key()
        return query, keys, value(), gate
    values = value()
    return query, key(), values, gate


def _values_last(build: GraphBuild) -> bool:
    """Models with two caches make keys before values."""
    shape = build.shape
    return (
        bool(shape.sliding_window) and shape.swa_mask is not None
    ) or shape.architecture in ATTENDS_DIRECTLY


def _fused(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int, queries: int) -> Projections:
    """As parts of one product."""
    shape, graph = build.shape, build.graph
    made = build.weighted(tensors.rows("attn_qkv"), normed)
    keys, values = shape.key_row(layer), shape.value_row(layer)
    parts = [graph.part(made, build.bytes_of(width)) for width in (queries, keys, values)]

    def rotated(width: int, part: int, *, value: bool = False) -> int:
        made = part if value else positioned(build, width, part, tensors, layer)
        rotation = rotation_of(build, layer, value=value)
        if rotation is not None and made == part:  # what is rotated has to be in one piece
            made = build.plain(width, part)
        return turned(build, width, made, rotation)

    query = rotated(queries, parts[0])
    if shape.architecture in COPIES_VALUES:
        parts[2] = build.plain(values, parts[2])
    value = rotated(values, parts[2], value=True)
    key = rotated(keys, parts[1])
    return query, key, value, None
