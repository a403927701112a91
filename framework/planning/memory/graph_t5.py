"""Operations of an encoder-decoder's decoder, which is what a server reserves (measured rules). Pure."""

from __future__ import annotations

from framework.planning.memory.graph_build import F32_BYTES, MASK_BYTES, CacheInputs, GraphBuild
from framework.planning.memory.tensor_table import LayerTensors

F16_BYTES = 2
INDEX32_BYTES = 4


def prepare(build: GraphBuild, left_out: int) -> None:
    """Inputs of all layers: distances, the encoder's results and mask. `left_out` layers are not built."""
    graph, cache = build.graph, build.cache_of(0)
    build.left_out = left_out
    build.shared["distances"] = graph.input(INDEX32_BYTES * cache.cells * build.tokens)
    encoded = _encoded_tokens(build)
    build.shared["encoded"] = graph.input(F32_BYTES * build.embedding * encoded)
    size = MASK_BYTES[build.settings.flash_attention] * build.tokens * encoded
    build.shared["encoded_mask"] = graph.input(size)


def _encoded_tokens(build: GraphBuild) -> int:
    """Before anything was encoded, as many as the model was trained for."""
    return build.shape.context_length or build.tokens


def decoder_layer(build: GraphBuild, x: int, number: int) -> int:
    """Self attention with learned distances, attention to the encoder, feed-forward part."""
    tensors = build.table.layer(number)
    if (
        build.outputs != build.tokens
    ):  # each layer reads distances of its own, those that are not built as well
        for _ in range(build.left_out):
            build.graph.use(build.graph.view(build.shared["distances"]), device=build.device)
    crossing = _sum(build, _self_attention(build, build.norm(x), tensors, number), x)
    inner = _sum(build, _cross_attention(build, build.norm(crossing), tensors), crossing)
    normed = build.norm(inner)
    length = tensors.row_length("ffn_down")
    gate = build.weighted(length, normed)
    middle = build.plain(length, gate, build.weighted(length, normed))
    return _sum(build, build.weighted(build.embedding, middle), inner)


def _sum(build: GraphBuild, new: int, residual: int) -> int:
    return build.plain(build.embedding, new, residual, overwrites=True)


def _self_attention(build: GraphBuild, normed: int, tensors: LayerTensors, number: int) -> int:
    graph, shape = build.graph, build.shape
    cache = build.cache_of(number)
    heads = shape.n_heads or 1
    query = build.weighted(tensors.rows("attn_q"), normed)
    value = build.weighted(shape.value_row(number), normed)
    key = build.weighted(shape.key_row(number), normed)
    graph.use(graph.view(key), cache.key_index, device=build.device)
    graph.use(graph.view(value), cache.value_index, device=build.device)
    sources = []
    if build.settings.flash_attention:
        cells = cache.cells * build.layout.streams
        sources.append(graph.add(F16_BYTES * shape.value_row(number) * cells))
    sources.append(_biased_scores(build, graph.view(query), cache, heads))
    seen = build.plain(tensors.row_length("attn_o"), *sources)
    return build.weighted(
        build.embedding, graph.view(build.plain(tensors.row_length("attn_o"), graph.view(seen)))
    )


def _biased_scores(build: GraphBuild, query: int, cache: CacheInputs, heads: int) -> int:
    graph = build.graph
    size = F32_BYTES * cache.cells * heads * build.tokens
    raw = graph.add(size, query)
    bias = graph.add(size, graph.view(build.shared["distances"]), device=build.device)
    bias = graph.add(size, graph.view(bias))
    biased = graph.add(size, raw, bias, overwrites=True)
    return graph.add(size, biased, cache.mask, overwrites=True)


def _cross_attention(build: GraphBuild, normed: int, tensors: LayerTensors) -> int:
    graph, shape = build.graph, build.shape
    encoded, mask = build.shared["encoded"], build.shared["encoded_mask"]
    width = tensors.rows("cross_attn_q")
    tokens = _encoded_tokens(build)
    query = build.weighted(width, normed)
    key, value = (
        graph.add(F32_BYTES * width * tokens, encoded, device=build.device) for _ in ("keys", "values")
    )
    if build.settings.flash_attention:
        small = [graph.add(F16_BYTES * width * tokens, graph.view(made)) for made in (key, value)]
        seen = build.plain(width, graph.view(query), *small, mask)
    else:
        turned = graph.add(F32_BYTES * width * tokens, graph.view(value))
        size = F32_BYTES * (shape.n_heads or 1) * build.tokens * tokens
        raw = graph.add(size, graph.view(key), graph.view(query))
        scores = graph.add(size, raw, mask, overwrites=True)
        seen = build.plain(width, graph.view(build.plain(width, turned, scores)))
    return build.weighted(build.embedding, graph.view(seen))
