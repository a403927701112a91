"""Operations of attention through a compressed row per token, in the engine's order. Pure."""

from __future__ import annotations

from framework.planning.memory.graph_attend import attend, positioned, scores_of, store
from framework.planning.memory.graph_build import GraphBuild
from framework.planning.memory.settings import bytes_per_element
from framework.planning.memory.tensor_table import LayerTensors


def latent_attention(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int) -> int:
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
    rotated = positioned(build, heads * rope, rotated, tensors, layer)
    query = build.plain(heads * (rank + rope), graph.view(absorbed), rotated)
    latent = build.weighted(rank + rope, normed)
    compressed = build.plain(rank, graph.part(latent, build.bytes_of(rank)))
    compressed = build.weighted(rank, compressed, overwrites=True)
    tail = positioned(build, rope, graph.part(latent, build.bytes_of(rope)), tensors, layer)
    key = build.plain(rank + rope, graph.view(compressed), tail)
    cache = build.cache_of(layer)
    graph.use(graph.view(key), cache.key_index, device=build.device)
    if cache.indexer_mask is not None:
        graph.use(cache.indexer_mask, device=build.device)
    if build.settings.flash_attention:
        seen = build.plain(heads * rank, graph.view(query), cache.mask)
    else:
        cells = cache.cells * build.layout.streams
        turned = graph.add(int(bytes_per_element(build.settings.key_type) * rank * cells))
        seen = build.plain(heads * rank, turned, scores_of(build, graph.view(query), cache, heads))
    width = heads * (shape.value_length_mla or 0)
    unpacked = build.weighted(width, graph.view(seen))
    return graph.view(build.plain(width, graph.view(unpacked)))


def unpacked_attention(build: GraphBuild, normed: int, tensors: LayerTensors, layer: int) -> int:
    """The row is unpacked into keys and values of every head, which are stored as such."""
    graph, shape = build.graph, build.shape
    heads, rank = shape.n_heads or 1, shape.kv_lora_rank or 0
    keys, values = shape.key_row(layer), shape.value_row(layer)
    rope = max(0, tensors.rows("attn_kv_a_mqa") - rank)
    source = build.weighted(tensors.rows("attn_q_a"), normed) if tensors.has("attn_q_a") else normed
    query = build.weighted(heads * shape.key_width, source)
    rotated = positioned(build, heads * rope, graph.part(query, build.bytes_of(heads * rope)), tensors, layer)
    query = build.plain(heads * shape.key_width, graph.part(query, 0), rotated)
    packed = build.weighted(rank + rope, normed)
    compressed = build.plain(rank, graph.part(packed, build.bytes_of(rank)))
    compressed = build.weighted(rank, compressed, overwrites=True)
    both = build.weighted(tensors.rows("attn_kv_b"), compressed)
    value = build.plain(values, graph.part(both, build.bytes_of(values)))
    tail = positioned(build, rope, graph.part(packed, build.bytes_of(rope)), tensors, layer)
    key = build.plain(keys, graph.part(both, 0), build.plain(heads * rope, tail))
    cache = build.cache_of(layer)
    store(build, cache, key, value)
    return attend(build, cache, query, layer, heads)
