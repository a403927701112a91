"""A whole model as the engine's graph: inputs, layers, output (measured rules). Pure.

Layers that are alike repeat the same pattern in a buffer, so of each kind only some are built. Called by
compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from framework.planning.memory import graph_gemma3n, graph_per_layer, graph_t5
from framework.planning.memory.engine_graph import HOST_BUFFER, EngineGraph
from framework.planning.memory.graph_attend import has_positions
from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.graph_layer import build_layer
from framework.planning.memory.graph_recurrent import fetch_tail, fetches_ahead
from framework.planning.memory.graph_rwkv import fetch_memory, is_rwkv, rwkv_layer
from framework.planning.memory.kv_cells import cell_layout
from framework.planning.memory.placement import Placement
from framework.planning.memory.settings import CacheSettings
from framework.planning.memory.shape import (
    ATTENDS_DIRECTLY,
    DRAFT_LAYERS_APART,
    OUTPUT_IN_HOST_MEMORY,
    PARALLEL_HYBRIDS,
    WITHOUT_MEMORY,
    WITHOUT_OUTPUT,
    ModelShape,
)
from framework.planning.memory.tensor_table import TensorTable

# Layers of one kind after one kind on one device that are built; the pattern has settled by then. Where all
# layers are alike, it settles at once.
ALIKE = 2
# So many last layers of a device are all built where the engine fetches states ahead, which changes what runs
# where.
LOOKAHEAD = 3
# Text positions in four sections.
POSITIONS = {"qwen35": 4, "qwen35moe": 4, "qwen2vl": 4, "qwen3vl": 4, "qwen3vlmoe": 4}
INDEX32_BYTES = 4
# A file whose layers are all different is no model that we know; some of it has to do.
MOST_BUILT = 128
# More than any model has; a header that claims more is not describing one.
MOST_DEEPSTACK_LAYERS = 16
ANSWERS_WITH_VECTORS = WITHOUT_OUTPUT | {"gemma-embedding"}
ENCODER_DECODERS = frozenset({"t5"})


def model_graph(
    shape: ModelShape, table: TensorTable, settings: CacheSettings, placement: Placement, outputs: int
) -> EngineGraph:
    """The graph for the largest micro-batch. `outputs`: tokens whose logits are wanted."""
    return _ModelBuilder(shape, table, settings, placement, outputs).run()


def micro_batch(shape: ModelShape, settings: CacheSettings) -> int:
    """Tokens of the largest micro-batch, a whole number per slot. Encoders fill a context's last block."""
    layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
    context = layout.cells if shape.architecture in WITHOUT_MEMORY else settings.n_ctx
    tokens = max(1, min(settings.ubatch, settings.batch, context))
    return -(-tokens // layout.slots) * layout.slots


class _ModelBuilder:
    def __init__(
        self,
        shape: ModelShape,
        table: TensorTable,
        settings: CacheSettings,
        placement: Placement,
        outputs: int,
    ) -> None:
        self.shape, self.table, self.placement = shape, table, placement
        self.names = placement.devices
        layout = cell_layout(settings.n_ctx, settings.slots, unified=settings.unified)
        self.graph = EngineGraph(len(self.names))
        self.build = GraphBuild(self.graph, shape, table, settings, layout, micro_batch(shape, settings))
        self.build.places = [self.names.index(name) for name in placement.layers]
        self.outputs = min(outputs, self.build.tokens)
        self.numbers = _built_layers(shape, table, placement)

    def run(self) -> EngineGraph:
        graph, build = self.graph, self.build
        graph.input(build.bytes_of(self._entering_width))  # vectors may come in place of tokens
        tokens = graph.input(INDEX32_BYTES * build.tokens)
        build.positions = graph.input(
            INDEX32_BYTES * build.tokens * POSITIONS.get(self.shape.architecture or "", 1)
        )
        self._make_inputs()
        build.wanted = graph.input(INDEX32_BYTES * self.outputs)
        x = self._embedded(tokens)
        self._fetch_after(-1)
        for position, number in enumerate(self.numbers):
            x = self._add_layer(x, position, number)
        self._finish(x)
        return graph

    @property
    def _entering_width(self) -> int:
        """Of a vector: the embedding, and what the first layers take in besides."""
        return self.build.embedding * (1 + _deepstack_layers(self.shape))

    def _make_inputs(self) -> None:
        """Caches' inputs, which are laid out before everything else."""
        build, shape = self.build, self.shape
        for number in self.numbers:
            if shape.owns_cache(number) or shape.architecture in ATTENDS_DIRECTLY:
                build.cache_of(number)
        if shape.recurrent_layers:
            build.shared["slots"] = self.graph.input(INDEX32_BYTES * build.layout.slots)
        if shape.architecture in ENCODER_DECODERS:
            graph_t5.prepare(build, self.shape.layers - len(self.numbers))

    def _embedded(self, tokens: int) -> int:
        graph, build = self.graph, self.build
        width = build.embedding
        x = graph.add(build.bytes_of(width), tokens, device=HOST_BUFFER)
        build.device = self.names.index(self.placement.device(0))
        if self._entering_width != width:
            wide = build.shared["wide"] = build.plain(self._entering_width, x)
            x = graph.part(wide, build.bytes_of(width))
        if self.table.row_length("position_embd.weight"):
            learned = graph.add(build.bytes_of(width), build.positions, device=HOST_BUFFER)
            x = build.plain(width, x, learned, overwrites=True)
        found = graph_per_layer.looked_up(build, tokens)
        if found is not None:
            x = build.plain(width, x, overwrites=True)
            graph_per_layer.prepare(build, found, x)
        if graph_gemma3n.has_streams(build):
            x = graph_gemma3n.streams_of(build, x, self.names.index(self.placement.output))
        return x

    def _add_layer(self, x: int, position: int, number: int) -> int:
        build = self.build
        build.device = self.names.index(self.placement.device(number))
        build.expert_device = HOST_BUFFER if number < self.placement.cpu_experts else build.device
        is_last = position == len(self.numbers) - 1 and self.shape.architecture not in DRAFT_LAYERS_APART
        build.outputs = self.outputs if is_last else build.tokens
        if self.shape.architecture in ENCODER_DECODERS:
            return graph_t5.decoder_layer(build, x, number)
        if graph_gemma3n.has_streams(build):
            return graph_gemma3n.streamed_layer(build, x, number)
        if is_rwkv(self.table.layer(number)):
            return rwkv_layer(build, x, number, lambda: self._fetch_after(position))
        x = build_layer(build, x, number, lambda: self._fetch_after(position))
        wide = build.shared.get("wide")
        if wide is None or number >= _deepstack_layers(self.shape) or build.outputs != build.tokens:
            return x
        features = self.graph.part(wide, build.bytes_of(build.embedding))
        return build.plain(build.embedding, x, features, overwrites=True)

    def _fetch_after(self, position: int) -> None:
        """Fetch the tail of the next layer that keeps one, as far as the engine looks ahead."""
        if self.shape.architecture in PARALLEL_HYBRIDS:
            return
        for number in self.numbers[position + 1 :]:
            tensors = self.table.layer(number)
            device = self.names.index(self.placement.device(number))
            if is_rwkv(tensors):
                fetch_memory(self.build, number, device)
                return
            if fetches_ahead(tensors):
                self.build.tails[number] = fetch_tail(self.build, device)
                return
            if tensors.has("attn_output") or tensors.has("ffn_gate_inp"):
                return

    def _finish(self, x: int) -> None:
        build = self.build
        build.device = self.names.index(self.placement.output)
        if graph_gemma3n.has_streams(build):
            x = graph_gemma3n.merged_streams(build, x, build.device)
        drafts = self.shape.architecture in DRAFT_LAYERS_APART
        everything = x = build.norm(x) if drafts else x
        if build.tokens != self.outputs:
            build.tokens = self.outputs
            x = build.plain(build.embedding, x, build.wanted)
        if self.shape.architecture in ANSWERS_WITH_VECTORS:
            return
        normed = x if drafts else build.norm(x)
        device = HOST_BUFFER if self.shape.architecture in OUTPUT_IN_HOST_MEMORY else build.device
        self.graph.add(F32_BYTES * (self.shape.vocab_size or 0) * build.tokens, normed, device=device)
        if drafts:  # a head reads what all tokens came to
            self.graph.use(everything, device=build.device)


def _deepstack_layers(shape: ModelShape) -> int:
    return min(shape.deepstack_layers or 0, MOST_DEEPSTACK_LAYERS, shape.layers)


def _built_layers(shape: ModelShape, table: TensorTable, placement: Placement) -> Sequence[int]:
    """Some of each kind and device, the last ones of each device, and the very last one."""
    count = shape.layers - (shape.nextn_layers or 0)
    if shape.architecture in ENCODER_DECODERS:
        return sorted({*range(min(ALIKE, count)), count - 1})
    devices = [*placement.layers[:count], placement.output]
    kept = {count - 1, *range(_deepstack_layers(shape))}
    for number in range(count):
        if devices[number] != devices[number + 1]:
            kept.update(range(number - (LOOKAHEAD if shape.recurrent_layers else 1) + 1, number + 1))
    kinds = [_kind(shape, table, placement, number) for number in range(count)]
    alike = ALIKE if shape.recurrent_layers or len(set(kinds)) > 1 else 1
    if shape.shared_kv_layers and len(set(placement.layers)) > 1 and not graph_gemma3n.is_streamed(table):
        alike = count  # each copies caches from where they are, and the engine divides what copies much
    seen: Counter[tuple[object, object]] = Counter()
    before: object = None
    for number, kind in enumerate(kinds):
        seen[before, kind] += 1
        if seen[before, kind] <= alike:
            kept.add(number)
        before = kind
    chosen = sorted(kept & set(range(count)))
    return chosen if len(chosen) <= MOST_BUILT else [*chosen[: MOST_BUILT - 1], chosen[-1]]


def _kind(shape: ModelShape, table: TensorTable, placement: Placement, number: int) -> tuple[object, ...]:
    """What makes the operations of a layer those of another one."""
    tensors = table.layer(number)
    return (
        placement.device(number),
        tensors.kind,
        number < placement.cpu_experts,
        shape.is_windowed(number),
        shape.owns_cache(number),
        has_positions(shape, tensors, number),
    )
