"""What the builders of a layer's operations share: sizes, inputs, devices (measured rules). Pure.

An operation that writes over its only source changes nothing in a buffer, so biases, scales, activations and
norms of a value that nobody else reads are left out everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from framework.planning.memory.engine_graph import EngineGraph
from framework.planning.memory.kv_cells import CellLayout, window_cells
from framework.planning.memory.settings import CacheSettings, is_rotated
from framework.planning.memory.shape import ATTENDS_DIRECTLY, INDEXED, NORMS_WITHOUT_WEIGHTS, ModelShape
from framework.planning.memory.tensor_table import TensorTable

F32_BYTES = 4
INDEX_BYTES = 8
# Masks are f16 for flash attention, f32 without.
MASK_BYTES = {True: 2, False: 4}
# The engine rotates quantised values by matrices of this width, and keys by the widest power of two of it
# that divides a head.
ROTATION = 64


@dataclass
class CacheInputs:
    """What the layers of one cache read: where to write keys and values, what to mask, how to rotate."""

    cells: int
    """Per stream."""
    key_index: int
    value_index: int
    mask: int
    key_rotation: int | None = None
    value_rotation: int | None = None
    indexer_mask: int | None = None
    """What the indexer may not pick."""


@dataclass
class GraphBuild:
    """A graph under construction, for one micro-batch of `tokens` tokens."""

    graph: EngineGraph
    shape: ModelShape
    table: TensorTable
    settings: CacheSettings
    layout: CellLayout
    tokens: int
    positions: int = -1
    wanted: int = -1
    """Which tokens are wanted in the end, as an input."""
    outputs: int = 0
    """Tokens that the layer under construction hands on."""
    left_out: int = 0
    """Layers that are like others and are not built."""
    full: CacheInputs | None = None
    windowed: CacheInputs | None = None
    places: Sequence[int] = ()
    """Device of each layer."""
    device: int = 0
    """Of the layer under construction."""
    expert_device: int = 0
    tails: dict[int, int] = field(default_factory=dict)
    """Last tokens of each slot, fetched for a layer ahead of it."""
    states: dict[int, int] = field(default_factory=dict)
    """The same of states, where those are fetched ahead as well."""
    shared: dict[str, int] = field(default_factory=dict)
    """Results that later layers read, by name."""

    @property
    def embedding(self) -> int:
        """Width of what goes from layer to layer."""
        return self.shape.embedding_length or 0

    def bytes_of(self, width: int) -> int:
        """A value of `width` elements per token."""
        return F32_BYTES * width * self.tokens

    def weighted(self, width: int, *sources: int, overwrites: bool = False) -> int:
        """A result of an operation with weights of the current layer."""
        return self.graph.append(F32_BYTES * width * self.tokens, sources, self.device, overwrites)

    def plain(self, width: int, *sources: int, overwrites: bool = False) -> int:
        """A result of an operation without weights."""
        return self.graph.append(F32_BYTES * width * self.tokens, sources, None, overwrites)

    def norm(self, source: int) -> int:
        """A norm of a value that is read again later: the norm proper, then its weights."""
        normed = self.plain(self.embedding, source)
        if self.shape.architecture in NORMS_WITHOUT_WEIGHTS:
            return normed
        return self.weighted(self.embedding, normed, overwrites=True)

    def cache_of(self, layer: int) -> CacheInputs:
        """Inputs of the cache that a layer uses, made when the first layer needs them."""
        if self.shape.is_windowed(layer):
            if self.windowed is None:
                self.windowed = self._cache_inputs(window=True)
            return self.windowed
        if self.full is None:
            self.full = self._cache_inputs(window=False)
        return self.full

    def _cache_inputs(self, *, window: bool) -> CacheInputs:
        graph, settings = self.graph, self.settings
        flash = settings.flash_attention
        cells = self._cells(window=window)
        values = 1 if flash or self.shape.has_latent_attention else self.shape.widest_value_row
        mask = MASK_BYTES[flash] * cells * self.tokens
        if self.shape.architecture in ATTENDS_DIRECTLY:
            return CacheInputs(cells, -1, -1, graph.input(mask))
        inputs = CacheInputs(
            cells,
            graph.input(INDEX_BYTES * self.tokens),
            graph.input(INDEX_BYTES * self.tokens * values),
            graph.input(mask),
        )
        if self.shape.architecture in INDEXED:
            inputs.indexer_mask = graph.input(mask)
        if not self.shape.has_latent_attention:
            width = self._key_rotation(window=window)
            if is_rotated(settings.key_type) and width:
                inputs.key_rotation = graph.input(F32_BYTES * width**2)
            if flash and is_rotated(settings.value_type) and width:
                inputs.value_rotation = graph.input(F32_BYTES * ROTATION**2)
        return inputs

    def _cells(self, *, window: bool) -> int:
        if self.shape.architecture in ATTENDS_DIRECTLY:
            return self.tokens
        if not window:
            return self.layout.cells_per_stream
        return window_cells(self.layout, self.shape.sliding_window or 0, self.settings)

    def _key_rotation(self, *, window: bool) -> int:
        """Width of the matrix that rotates keys, 0 where heads are too odd for one."""
        head = (window and self.shape.key_length_swa) or self.shape.key_width
        if head % ROTATION:
            return 0
        return head & -head
