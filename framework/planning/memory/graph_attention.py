"""Operations of attention, in the engine's order (measured rules). Pure.

Each function takes the normed input of a layer and returns what is added to the residual, output matrix
included, except where the caller has to put other operations before that matrix.
"""

from __future__ import annotations

from framework.planning.memory.graph_build import F32_BYTES, CacheInputs, GraphBuild
from framework.planning.memory.kv_cache import row_elements
from framework.planning.memory.settings import bytes_per_element
from framework.planning.memory.shape import REPEATS_KEYS, WITHOUT_MEMORY
from framework.planning.memory.tensor_table import LayerTensors

F16_BYTES = 2
# Positions are learned, relative, or not needed.
WITHOUT_ROTATION = frozenset(
    {
        "bert",
        "jina-bert-v2",
        "gpt2",
        "starcoder",
        "bloom",
        "mpt",
        "t5",
        "jamba",
        "nemotron_h",
        "nemotron_h_moe",
    }
    | {"granitehybrid", "kimi-linear"}
)
# Every so many layers attend without positions; Cohere 2 and EXAONE 4 do where they see everything.
UNROTATED_PERIOD = {"llama4": 4, "smollm3": 4}
NORMS_VALUES = frozenset({"gemma3n", "gemma4"})
UNROTATED_WHERE_FULL = frozenset({"cohere2", "exaone4"})


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
    if tensors.has("attn_kv_a_mqa"):
        return _latent_attention(build, normed, tensors, layer)
    shape = build.shape
    heads = heads_of(build, tensors, layer)
    queries = _query_width(build, tensors, layer)
    if tensors.has("attn_qkv"):
        made = _fused(build, normed, tensors, layer, queries)
    else:
        made = _separate(build, normed, tensors, layer, queries)
    query, key, value, gate = made
    if shape.architecture in WITHOUT_MEMORY:
        return _attend_directly(build, query, key, value, layer, heads)
    cache = build.cache_of(layer)
    _store(build, cache, key, value)
    seen = _attend(build, cache, query, layer, heads)
    if gate is None:
        return seen
    seen = _turned_back(build, seen, tensors, layer)
    opened = build.plain(queries, gate)
    if shape.architecture in REPEATS_KEYS:
        opened = build.graph.view(opened)
    return build.plain(queries, seen, opened, overwrites=True)


def attention_output(build: GraphBuild, seen: int, tensors: LayerTensors, layer: int) -> int:
    """What is added to the residual: turned back where values were rotated, and through the output matrix."""
    if not is_gated(build, tensors, layer):
        seen = _turned_back(build, seen, tensors, layer)
    return build.weighted(build.embedding, seen)


def is_gated(build: GraphBuild, tensors: LayerTensors, layer: int) -> bool:
    """Whether the queries' matrix makes a gate as well."""
    return tensors.rows("attn_q") == 2 * _query_width(build, tensors, layer)


def _turned_back(build: GraphBuild, seen: int, tensors: LayerTensors, layer: int) -> int:
    rotation = _rotation(build, layer, value=True)
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


def _is_rotated(build: GraphBuild, layer: int) -> bool:
    """Whether positions go into queries and keys, which makes a copy of each."""
    architecture = build.shape.architecture
    if architecture in WITHOUT_ROTATION:
        return False
    if architecture in UNROTATED_WHERE_FULL and build.shape.sliding_window:
        return build.shape.is_windowed(layer)
    period = UNROTATED_PERIOD.get(architecture or "")
    return period is None or (layer + 1) % period != 0


def _separate(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int, queries: int) -> Projections:
    """From matrices of their own."""
    shape = build.shape
    made = build.weighted(tensors.rows("attn_q"), normed)
    gate: int | None = None
    if tensors.rows("attn_q") == 2 * queries:  # the second half opens and closes the first
        gate = build.graph.part(made, build.bytes_of(queries))
        query = build.plain(queries, build.graph.part(made, build.bytes_of(queries)))
    else:
        query = _positioned(build, queries, build.graph.view(made), tensors, layer)
    query = _turned(build, queries, query, _rotation(build, layer, value=False))
    if not shape.owns_cache(layer) and shape.architecture not in WITHOUT_MEMORY:
        return query, None, None, gate

    def key() -> int:
        made = build.graph.view(build.weighted(shape.key_row(layer), normed))
        return _turned(
            build,
            shape.key_row(layer),
            _positioned(build, shape.key_row(layer), made, tensors, layer),
            _rotation(build, layer, value=False),
        )

    def value() -> int:
        made = build.graph.view(build.weighted(shape.value_row(layer), normed))
        if shape.architecture in NORMS_VALUES:
            made = build.plain(shape.value_row(layer), made)
        return _turned(build, shape.value_row(layer), made, _rotation(build, layer, value=True))

    if _values_last(build):
        keys = key()
        return query, keys, value(), gate
    values = value()
    return query, key(), values, gate


def _values_last(build: GraphBuild) -> bool:
    """Models with two caches make keys before values."""
    shape = build.shape
    return (bool(shape.sliding_window) and shape.swa_mask is not None) or shape.architecture in WITHOUT_MEMORY


def _fused(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int, queries: int) -> Projections:
    """As parts of one product."""
    shape, graph = build.shape, build.graph
    made = build.weighted(tensors.rows("attn_qkv"), normed)
    keys, values = shape.key_row(layer), shape.value_row(layer)
    parts = [graph.part(made, build.bytes_of(width)) for width in (queries, keys, values)]
    query = _turned(
        build,
        queries,
        _positioned(build, queries, parts[0], tensors, layer),
        _rotation(build, layer, value=False),
    )
    value = _turned(build, values, parts[2], _rotation(build, layer, value=True))
    key = _turned(
        build, keys, _positioned(build, keys, parts[1], tensors, layer), _rotation(build, layer, value=False)
    )
    return query, key, value, None


def _positioned(build: GraphBuild, width: int, source: int, tensors: LayerTensors, layer: int) -> int:
    """With positions and norms of heads, which together make one copy of what they are read from by a
    view.
    """
    if _is_rotated(build, layer):
        return build.plain(width, source, build.positions)
    return build.plain(width, source) if tensors.has("attn_q_norm") else source


def _rotation(build: GraphBuild, layer: int, *, value: bool) -> int | None:
    if build.shape.architecture in WITHOUT_MEMORY:
        return None
    cache = build.cache_of(layer)
    return cache.value_rotation if value else cache.key_rotation


def _turned(build: GraphBuild, width: int, source: int, rotation: int | None) -> int:
    """Rotated for a quantised cache."""
    if rotation is None:
        return source
    return build.graph.view(build.plain(width, build.graph.view(source), rotation))


def _store(build: GraphBuild, cache: CacheInputs, key: int | None, value: int | None) -> None:
    if key is not None and value is not None:
        build.graph.use(build.graph.view(key), cache.key_index, device=build.device)
        build.graph.use(build.graph.view(value), cache.value_index, device=build.device)


def _attend(build: GraphBuild, cache: CacheInputs, query: int, layer: int, heads: int) -> int:
    """What the queries see in the cache, one row per token."""
    graph, shape = build.graph, build.shape
    width = heads * (shape.value_row(layer) // max(1, shape.kv_heads(layer)))
    query = graph.view(query)
    stored = _stored(build, cache, layer)
    if build.settings.flash_attention:
        seen = build.plain(width, query, *stored, cache.mask)
    else:
        scores = _scores(build, query, cache, heads, *stored)
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


def _scores(build: GraphBuild, query: int, cache: CacheInputs, heads: int, *stored: int) -> int:
    """Without flash attention: a number per head, token and cell."""
    size = F32_BYTES * cache.cells * heads * build.tokens
    raw = build.graph.add(size, query, *stored)
    return build.graph.add(size, raw, cache.mask, overwrites=True)


def _attend_directly(
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


def _latent_attention(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int) -> int:
    """Latent attention with its matrices absorbed: one row per cell serves as key and as value."""
    graph, shape = build.graph, build.shape
    heads, rank = shape.n_heads or 1, shape.kv_lora_rank or 0
    rope = max(0, shape.latent_width - rank)
    per_head = shape.key_length_mla or tensors.rows("attn_q") // heads
    source = normed
    if tensors.has("attn_q_a"):
        source = build.weighted(tensors.rows("attn_q_a"), normed)
    query = build.weighted(heads * per_head, source)
    absorbed = build.weighted(heads * rank, graph.part(query, build.bytes_of(heads * (per_head - rope))))
    rotated = graph.part(query, build.bytes_of(heads * rope))
    rotated = _positioned(build, heads * rope, rotated, tensors, layer)
    query = build.plain(heads * (rank + rope), graph.view(absorbed), rotated)
    latent = build.weighted(rank + rope, normed)
    compressed = build.plain(rank, graph.part(latent, build.bytes_of(rank)))
    compressed = build.weighted(rank, compressed, overwrites=True)
    tail = _positioned(build, rope, graph.part(latent, build.bytes_of(rope)), tensors, layer)
    key = build.plain(rank + rope, graph.view(compressed), tail)
    cache = build.cache_of(layer)
    graph.use(graph.view(key), cache.key_index, device=build.device)
    if build.settings.flash_attention:
        seen = build.plain(heads * rank, graph.view(query), cache.mask)
    else:
        cells = cache.cells * build.layout.streams
        turned = graph.add(int(bytes_per_element(build.settings.key_type) * rank * cells))
        seen = build.plain(heads * rank, turned, _scores(build, graph.view(query), cache, heads))
    width = heads * (shape.value_length_mla or 0)
    unpacked = build.weighted(width, graph.view(seen))
    return graph.view(build.plain(width, graph.view(unpacked)))
