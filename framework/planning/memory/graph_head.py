"""Operations of an embedded prediction head, which runs in a context of its own (measured rules). Pure."""

from __future__ import annotations

from framework.planning.memory.engine_graph import HOST_BUFFER, EngineGraph
from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.graph_layer import build_layer
from framework.planning.memory.graph_model import INDEX32_BYTES, POSITIONS, micro_batch
from framework.planning.memory.kv_cells import cell_layout
from framework.planning.memory.placement import Placement
from framework.planning.memory.settings import CacheSettings
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable


def head_graph(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, placement: Placement, outputs: int
) -> EngineGraph:
    """Embedding and hidden state of each token are joined and go through the prediction layer."""
    names = placement.devices
    graph = EngineGraph(len(names))
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    build = GraphBuild(graph, shape, table, settings, layout, micro_batch(shape, settings))
    number = shape.layers - 1
    width = build.embedding
    tokens = graph.input(INDEX32_BYTES * build.tokens)
    hidden = graph.input(build.bytes_of(width))
    build.positions = graph.input(INDEX32_BYTES * build.tokens * POSITIONS.get(shape.architecture or "", 1))
    build.cache_of(number)
    build.wanted = graph.input(INDEX32_BYTES * outputs)
    build.outputs = build.tokens  # hidden states of all tokens are wanted, for the next draft
    build.device = build.expert_device = names.index(placement.device(number))
    embedded = graph.add(build.bytes_of(width), tokens, device=HOST_BUFFER)
    both = build.plain(2 * width, *(_normed(build, made) for made in (embedded, hidden)))
    x = build_layer(build, build.weighted(width, both), number, lambda: None)
    x = _normed(build, x)
    build.device = names.index(placement.output)
    build.tokens = min(outputs, build.tokens)
    x = build.plain(width, x, build.wanted)
    graph.add(F32_BYTES * (shape.vocab_size or 0) * build.tokens, x, device=build.device)
    return graph


def _normed(build: GraphBuild, source: int) -> int:
    """A norm of something that nobody else reads."""
    return build.weighted(
        build.embedding, build.plain(build.embedding, source, overwrites=True), overwrites=True
    )
