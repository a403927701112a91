"""Operations of Gemma 3n, whose layers pass on several streams at once (measured rules). Pure."""

from __future__ import annotations

from framework.planning.memory.graph_attention import attention, attention_output
from framework.planning.memory.graph_build import GraphBuild
from framework.planning.memory.graph_feed_forward import dense
from framework.planning.memory.graph_per_layer import gated_slice
from framework.planning.memory.tensor_table import LayerTensors, TensorTable

# Streams besides the active one come from a projection of the embedding.
PROJECTION, UNPROJECTION = "altup_proj.weight", "altup_unembd_proj.weight"
# The first layers keep only the strongest activations.
SPARSE_LAYERS = 10
MOST_STREAMS = 64
STREAM_DIMENSIONS = 3


def is_streamed(table: TensorTable) -> bool:
    """Whether a model passes on several streams."""
    dims, _ = table.outside.get(PROJECTION, ((), None))
    return len(dims) == STREAM_DIMENSIONS and UNPROJECTION in table.outside


def has_streams(build: GraphBuild) -> bool:
    """Whether a graph has them; its layers read embeddings of their own as well."""
    return "looked_up" in build.shared and is_streamed(build.table)


def _others(build: GraphBuild) -> int:
    dims, _ = build.table.outside[PROJECTION]
    return min(max(1, dims[-1]), MOST_STREAMS)


def streams_of(build: GraphBuild, x: int, output_device: int) -> int:
    """The embedding and its projections, one after the other."""
    width, others = build.embedding, _others(build)
    repeated = build.plain(others * width, x)
    projected = build.graph.add(build.bytes_of(others * width), repeated, device=output_device)
    return build.plain((others + 1) * width, x, _rescaled(build, projected, x, others))


def _rescaled(build: GraphBuild, projected: int, like: int, others: int) -> int:
    """`projected` with the magnitude of `like`."""
    width = build.embedding
    magnitude = build.plain(1, build.plain(width, like))
    scaled = build.plain(others * width, projected, magnitude)
    own = build.plain(others, build.plain(others * width, projected, overwrites=True))
    return build.plain(others * width, scaled, own, overwrites=True)


def merged_streams(build: GraphBuild, x: int, output_device: int) -> int:
    """One value per token out of all streams."""
    graph, width, others = build.graph, build.embedding, _others(build)
    rest = graph.part(x, build.bytes_of(others * width))
    projected = graph.add(build.bytes_of(others * width), rest, device=output_device)
    scaled = _rescaled(build, projected, graph.part(x, build.bytes_of(width)), others)
    parts = [graph.part(scaled, build.bytes_of(width)) for n in range(others)]
    return build.plain(width, graph.part(x, build.bytes_of(width)), *parts)


def streamed_layer(build: GraphBuild, x: int, number: int) -> int:
    """One layer: predict all streams, compute the active one, correct all streams by it."""
    graph, width = build.graph, build.embedding
    tensors = build.table.layer(number)
    streams = _others(build) + 1
    predictions = _predicted(build, x, tensors, streams)
    active = graph.part(predictions, build.bytes_of(width))
    leaving = _active_stream(build, active, tensors, number)
    innovation = build.plain(width, leaving, graph.part(predictions, build.bytes_of(width)))
    repeated = build.plain(streams * width, innovation)
    coefficients = build.weighted(streams, build.weighted(width, leaving, overwrites=True))
    corrected = build.plain(streams * width, repeated, coefficients, overwrites=True)
    corrected = build.plain(streams * width, corrected, predictions, overwrites=True)
    entering = build.weighted(width, graph.part(corrected, build.bytes_of(width)))
    first = gated_slice(build, entering, tensors)
    rest = build.plain(
        (streams - 1) * width, graph.part(corrected, build.bytes_of((streams - 1) * width)), first
    )
    return build.plain(streams * width, graph.part(corrected, build.bytes_of(width)), rest)


def _predicted(build: GraphBuild, x: int, tensors: LayerTensors, streams: int) -> int:
    graph, width = build.graph, build.embedding
    turned = build.plain(streams * width, graph.view(x))
    router = build.plain(width, graph.part(x, build.bytes_of(width)))
    router = build.weighted(width, router, overwrites=True)
    coefficients = build.weighted(streams * streams, build.weighted(streams, router))
    mixed = build.plain(streams * width, graph.view(turned), graph.view(coefficients))
    back = build.plain(streams * width, graph.view(mixed))
    return build.plain(streams * width, back, x, overwrites=True)


def _active_stream(build: GraphBuild, active: int, tensors: LayerTensors, number: int) -> int:
    width = build.embedding
    normed = build.norm(active)
    seen = attention(build, normed, tensors, number)
    attended = attention_output(build, seen, tensors, number)
    attended = build.plain(width, attended, active, overwrites=True)
    low_rank = build.weighted(width, build.weighted(tensors.rows("laurel_l"), normed))
    low_rank = build.plain(width, low_rank, normed, overwrites=True)
    both = build.plain(width, attended, low_rank, overwrites=True)
    entering = build.norm(both)
    fed = _sparse(build, entering, tensors) if number < SPARSE_LAYERS else dense(build, entering, tensors)
    return build.plain(width, fed, both, overwrites=True)


def _sparse(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    inner = tensors.row_length("ffn_down")
    up, gate = build.weighted(inner, source), build.weighted(inner, source)
    mean = build.plain(1, gate)
    spread = build.plain(1, build.plain(inner, gate, mean))
    threshold = build.plain(1, mean, spread, overwrites=True)
    gate = build.plain(inner, gate, threshold, overwrites=True)
    return build.weighted(build.embedding, build.plain(inner, up, gate, overwrites=True))
