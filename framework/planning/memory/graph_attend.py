"""Attention proper: positions, caches, scores, in the engine's order (measured rules). Pure.

What graph_attention and graph_latent share: how queries, keys and values become what a layer sees.
"""

from __future__ import annotations

from framework.planning.memory.graph_build import F32_BYTES, CacheInputs, GraphBuild
from framework.planning.memory.kv_cache import row_elements
from framework.planning.memory.settings import bytes_per_element
from framework.planning.memory.shape import ATTENDS_DIRECTLY, ModelShape
from framework.planning.memory.tensor_table import LayerTensors

F16_BYTES = 2
# Positions are learned, relative, or not needed.
WITHOUT_POSITIONS = frozenset(
    {"bert", "jina-bert-v2", "gpt2", "starcoder", "bloom", "mpt", "t5", "jamba", "nemotron_h", "jais"}
    | {"nemotron_h_moe", "granitehybrid", "kimi-linear", "refact"}
)
# Only one size of a family has them; the engine knows it by its layers.
POSITIONS_IN_ONE_SIZE = {"baichuan": 32}
# Every so many layers attend without positions; those of the others do where they see everything.
UNROTATED_PERIOD = {"llama4": 4, "smollm3": 4}
LEADS_WITH_POSITIONS = "cohere2moe"
UNROTATED_WHERE_FULL = frozenset({"cohere2", "cohere2moe", "exaone4", "exaone-moe", "afmoe", "smallthinker"})


def has_positions(shape: ModelShape, tensors: LayerTensors, layer: int) -> bool:
    """Whether positions go into queries and keys, which makes a copy of each."""
    architecture = shape.architecture or ""
    if architecture in WITHOUT_POSITIONS:
        return False
    if architecture in POSITIONS_IN_ONE_SIZE:
        return shape.layers == POSITIONS_IN_ONE_SIZE[architecture]
    if architecture in UNROTATED_WHERE_FULL and shape.sliding_window:
        leads = architecture == LEADS_WITH_POSITIONS and not tensors.has("ffn_gate_inp")
        return shape.is_windowed(layer) or leads
    period = UNROTATED_PERIOD.get(architecture)
    return period is None or (layer + 1) % period != 0


def positioned(build: GraphBuild, width: int, source: int, tensors: LayerTensors, layer: int) -> int:
    """With positions and norms of heads, which together make one copy of what they are read from by a
    view.
    """
    if has_positions(build.shape, tensors, layer):
        return build.plain(width, source, build.positions)
    return build.plain(width, source) if tensors.has("attn_q_norm") else source


def rotation_of(build: GraphBuild, layer: int, *, value: bool) -> int | None:
    """The matrix that turns what a quantised cache stores; None where nothing is turned."""
    if build.shape.architecture in ATTENDS_DIRECTLY:
        return None
    cache = build.cache_of(layer)
    return cache.value_rotation if value else cache.key_rotation


def turned(build: GraphBuild, width: int, source: int, rotation: int | None) -> int:
    """Rotated for a quantised cache."""
    if rotation is None:
        return source
    return build.graph.view(build.plain(width, build.graph.view(source), rotation))


def store(build: GraphBuild, cache: CacheInputs, key: int | None, value: int | None) -> None:
    """Write keys and values of the micro-batch, where a layer has a cache of its own."""
    if key is not None and value is not None:
        build.graph.use(build.graph.view(key), cache.key_index, device=build.device)
        build.graph.use(build.graph.view(value), cache.value_index, device=build.device)


def attend(build: GraphBuild, cache: CacheInputs, query: int, layer: int, heads: int) -> int:
    """What the queries see in the cache, one row per token."""
    graph, shape = build.graph, build.shape
    width = heads * (shape.value_row(layer) // max(1, shape.kv_heads(layer)))
    query = graph.view(query)
    stored = _stored(build, cache, layer)
    if build.settings.flash_attention:
        seen = build.plain(width, query, *stored, cache.mask)
    else:
        scores = scores_of(build, query, cache, heads, *stored)
        seen = build.plain(width, graph.view(build.plain(width, scores)))
    return graph.view(seen)


def _stored(build: GraphBuild, cache: CacheInputs, layer: int) -> tuple[int, ...]:
    """Keys and values as sources, where attention may run on another device than that of the cache.

    So it does in a layer that uses the cache of another one, and where the engine fetches a tail for another
    device in between.
    """
    owner = build.shape.cache_owner(layer)
    may_differ = owner != layer or build.shape.recurrent_layers
    if build.graph.devices == 1 or not may_differ or owner >= len(build.places):
        return ()
    keys, values = row_elements(build.shape, owner, flash_attention=build.settings.flash_attention)
    cells = cache.cells * build.layout.streams
    sizes = (
        int(cells * keys * bytes_per_element(build.settings.key_type)),
        int(cells * values * bytes_per_element(build.settings.value_type)),
    )
    return tuple(build.graph.cache(size, build.places[owner]) for size in sizes)


def scores_of(build: GraphBuild, query: int, cache: CacheInputs, heads: int, *stored: int) -> int:
    """Without flash attention: a number per head, token and cell."""
    size = F32_BYTES * cache.cells * heads * build.tokens
    raw = build.graph.add(size, query, *stored)
    return build.graph.add(size, raw, cache.mask, overwrites=True)


def attend_directly(
    build: GraphBuild, query: int, key: int | None, value: int | None, layer: int, heads: int
) -> int:
    """Attention among the tokens of a micro-batch, without a cache."""
    graph, shape = build.graph, build.shape
    cache = build.cache_of(layer)
    keys, values = shape.key_row(layer), shape.value_row(layer)
    width = heads * (values // max(1, shape.kv_heads(layer)))
    assert key is not None and value is not None  # layers without memory share none
    if build.settings.flash_attention:
        small_key = graph.add(F16_BYTES * keys * build.tokens, graph.view(key))
        small_value = graph.add(F16_BYTES * values * build.tokens, graph.view(value))
        return graph.view(build.plain(width, graph.view(query), small_key, small_value, cache.mask))
    turned = build.plain(values, graph.view(value))
    size = F32_BYTES * cache.cells * heads * build.tokens
    raw = graph.add(size, graph.view(key), graph.view(query))
    scores = graph.add(size, raw, cache.mask, overwrites=True)
    seen = build.plain(width, turned, scores)
    return graph.view(build.plain(width, graph.view(seen)))
