"""The tensor directory of a model, summed up once so that plans are quick. Pure.

Made when a model's files are read; asked by weights for bytes and by the graph modules for widths.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from framework.models.ggml_types import GGML_TYPES
from framework.models.gguf_tensors import TensorInfo
from framework.planning.memory.shape import MOST_LAYERS

# Tensors of a layer. Encoder-decoders number each side on its own; the decoder's names stay plain.
LAYER_NAME = re.compile(r"(enc\.)?(?:dec\.)?blk\.(\d+)\.(.+)")
EXPERTS = re.compile(r"ffn_(?:up|gate|down|gate_up)_(?:ch)?exps\.")
# Which types a CPU rearranges depends on its vector units: this is what x86 with AVX2 does.
REPACKED_TYPES = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"})
# Rows are woven together by eight.
ROWS_TOGETHER = 8
MATRIX_DIMENSIONS, EXPERT_DIMENSIONS = 2, 3
# Sizes of a layer's tensors: plain, rearranged, and the largest of all.
LARGEST, NOTHING = 2, (0, 0, 0)
# Looked up by row, not multiplied.
LOOKED_UP = frozenset(
    {"token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"}
)


@dataclass(frozen=True)
class Bytes:
    """Size of some tensors: those that a CPU would rearrange, and the others."""

    plain: int = 0
    repacked: int = 0

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(self.plain + other.plain, self.repacked + other.repacked)


@dataclass(frozen=True)
class LayerTensors:
    """One layer. Dimensions are elements, the length of a row first; names lack `blk.N.`."""

    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    weights: Bytes = Bytes()
    experts: Bytes = Bytes()
    kind: int = 0
    """The same for layers with the same tensors."""
    largest_weight_bytes: int = 0
    largest_expert_bytes: int = 0

    def rows(self, name: str) -> int:
        """Width of what a matrix makes, 0 where there is none."""
        dims = self.dims.get(f"{name}.weight", ())
        return dims[1] if len(dims) > 1 else 0

    def row_length(self, name: str) -> int:
        """Width of what goes into a matrix (or of a norm), 0 where there is none."""
        dims = self.dims.get(f"{name}.weight", ())
        return dims[0] if dims else 0

    def has(self, name: str) -> bool:
        """Whether the layer has that weight."""
        return f"{name}.weight" in self.dims


@dataclass(frozen=True)
class TensorTable:
    """All tensors of a model: by layer, and those outside of layers by name."""

    layers: tuple[LayerTensors, ...] = ()
    outside: Mapping[str, tuple[tuple[int, ...], Bytes]] = field(default_factory=dict)
    is_complete: bool = True
    """False where a tensor has a type that we do not know, whose bytes are missing from every sum."""
    buffers: dict[Hashable, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Compute buffers found before, by what else they depend on; dies with the table. See compute."""

    def row_length(self, name: str) -> int:
        """Length of a row of a tensor outside of layers, 0 where there is none."""
        dims, _ = self.outside.get(name, ((), Bytes()))
        return dims[0] if dims else 0

    def layer(self, number: int) -> LayerTensors:
        """A layer, empty where the file has none of that number."""
        return self.layers[number] if number < len(self.layers) else LayerTensors()


def table_of(tensors: Iterable[TensorInfo]) -> TensorTable:
    """The table of a tensor directory. Sizes of unknown types count as 0."""
    dims: dict[int, dict[str, tuple[int, ...]]] = {}
    sizes: dict[tuple[int, bool], list[int]] = {}
    outside = {}
    is_complete = True
    for tensor in tensors:
        is_complete = is_complete and tensor.bytes is not None
        match = LAYER_NAME.match(tensor.name)
        if match is None or int(match[2]) >= MOST_LAYERS:
            outside[tensor.name] = (tensor.dims, _bytes(tensor))
            continue
        side, number, name = match[1] or "", int(match[2]), match[3]
        dims.setdefault(number, {})[side + name] = tensor.dims
        entry = sizes.setdefault((number, bool(EXPERTS.match(name))), [0, 0, 0])
        entry[_is_repacked(tensor)] += tensor.bytes or 0
        entry[LARGEST] = max(entry[LARGEST], tensor.bytes or 0)
    count = max(dims, default=-1) + 1
    kinds: dict[tuple[object, ...], int] = {}
    layers = []
    for number in range(count):
        layer = dims.get(number, {})
        *weights, largest_weight = sizes.get((number, False), NOTHING)
        *experts, largest_expert = sizes.get((number, True), NOTHING)
        kind = kinds.setdefault(tuple(layer.items()), len(kinds))
        layers.append(
            LayerTensors(layer, Bytes(*weights), Bytes(*experts), kind, largest_weight, largest_expert)
        )
    return TensorTable(tuple(layers), outside, is_complete)


def _bytes(tensor: TensorInfo) -> Bytes:
    size = tensor.bytes or 0
    return Bytes(repacked=size) if _is_repacked(tensor) else Bytes(plain=size)


def _is_repacked(tensor: TensorInfo) -> bool:
    known = GGML_TYPES.get(tensor.type)
    if known is None or known.name not in REPACKED_TYPES or tensor.name in LOOKED_UP:
        return False
    dimensions = EXPERT_DIMENSIONS if "exps." in tensor.name else MATRIX_DIMENSIONS
    return len(tensor.dims) == dimensions and tensor.dims[1] % ROWS_TOGETHER == 0
