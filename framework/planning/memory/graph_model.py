"""A whole model as the engine's graph: inputs, layers, output (measured rules). Pure.

Layers that are alike repeat the same pattern in a buffer, so of each kind only some are built. Called by
compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from framework.planning.memory import graph_gemma3n, graph_per_layer, graph_t5
from framework.planning.memory.engine_graph import HOST_BUFFER, EngineGraph
from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.graph_layer import build_layer
from framework.planning.memory.graph_recurrent import fetch_tail, fetches_ahead
from framework.planning.memory.kv_cells import cell_layout
from framework.planning.memory.placement import Placement
from framework.planning.memory.settings import CacheSettings
from framework.planning.memory.shape import PARALLEL_HYBRIDS, WITHOUT_MEMORY, WITHOUT_OUTPUT, ModelShape
from framework.planning.memory.tensor_table import TensorTable

# Layers of one kind after one kind on one device that are built; the pattern has settled by then.
ALIKE = 2
# The last layers of a device are all built: what the engine fetches ahead changes where they run.
LOOKAHEAD = 3
# Text positions in four sections.
POSITIONS = {"qwen35": 4, "qwen35moe": 4, "qwen2vl": 4, "qwen3vl": 4, "qwen3vlmoe": 4}
INDEX32_BYTES = 4
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
        graph.input(build.bytes_of(build.embedding))  # vectors may come in place of tokens
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

    def _make_inputs(self) -> None:
        """Caches' inputs, which are laid out before everything else."""
        build, shape = self.build, self.shape
        for number in self.numbers:
            if shape.owns_cache(number) or shape.architecture in WITHOUT_MEMORY:
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
        build.outputs = self.outputs if position == len(self.numbers) - 1 else build.tokens
        if self.shape.architecture in ENCODER_DECODERS:
            return graph_t5.decoder_layer(build, x, number)
        if graph_gemma3n.has_streams(build):
            return graph_gemma3n.streamed_layer(build, x, number)
        return build_layer(build, x, number, lambda: self._fetch_after(position))

    def _fetch_after(self, position: int) -> None:
        """Fetch the tail of the next layer that keeps one, as far as the engine looks ahead."""
        if self.shape.architecture in PARALLEL_HYBRIDS:
            return
        for number in self.numbers[position + 1 :]:
            tensors = self.table.layer(number)
            if fetches_ahead(tensors):
                device = self.names.index(self.placement.device(number))
                self.build.tails[number] = fetch_tail(self.build, device)
                return
            if tensors.has("attn_output") or tensors.has("ffn_gate_inp"):
                return

    def _finish(self, x: int) -> None:
        build = self.build
        build.device = self.names.index(self.placement.output)
        if graph_gemma3n.has_streams(build):
            x = graph_gemma3n.merged_streams(build, x, build.device)
        if build.tokens != self.outputs:
            build.tokens = self.outputs
            x = build.plain(build.embedding, x, build.wanted)
        if self.shape.architecture in ANSWERS_WITH_VECTORS:
            return
        normed = build.norm(x)
        self.graph.add(F32_BYTES * (self.shape.vocab_size or 0) * build.tokens, normed, device=build.device)


def _built_layers(shape: ModelShape, table: TensorTable, placement: Placement) -> Sequence[int]:
    """Some of each kind and device, the last ones of each device, and the very last one."""
    count = shape.layers - (shape.nextn_layers or 0)
    if shape.architecture in ENCODER_DECODERS:
        return sorted({*range(min(ALIKE, count)), count - 1})
    devices = [*placement.layers[:count], placement.output]
    kept = {count - 1}
    for number in range(count):
        if devices[number] != devices[number + 1]:
            kept.update(range(number - LOOKAHEAD + 1, number + 1))
    seen: Counter[tuple[object, ...]] = Counter()
    chosen = []
    before: object = None
    for number in range(count):
        kind = (
            devices[number],
            table.layer(number).kind,
            number < placement.cpu_experts,
            shape.is_windowed(number),
            shape.owns_cache(number),
        )
        seen[before, kind] += 1
        if seen[before, kind] <= ALIKE or number in kept:
            chosen.append(number)
        before = kind
    return chosen
