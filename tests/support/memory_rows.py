"""What llama-server itself plans for many models, and the facts of those models' files.

`rows.json.gz` holds its tables of MiB per device, printed before it loads anything; `models.json.gz` the
headers and tensor directories of the files they were printed for. Used by the tests and benches of the memory
model.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.models.ggml_types import GGML_TYPES
from framework.models.gguf_fields import ARCHITECTURE, TOKENS, GgufHeader, Pairs, header_of
from framework.models.gguf_tensors import TensorInfo
from framework.models.swa_pattern import with_window
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware, HostSettings, Offload
from framework.planning.memory.shape import ModelShape, shape_of
from framework.planning.memory.tensor_table import TensorTable, table_of

FOLDER = Path(__file__).parents[1] / "data" / "memory"
GIB = 1 << 30
# The devices that stood in for GPUs: each saw the same free memory.
GPU_BYTES = 24 * GIB
# The engine's table ends where the server begins: it knows no prompt cache and no checkpoints.
ENGINE_ONLY = HostSettings(cache_ram_bytes=0, checkpoints=0)
FLAGS = {"--kv-unified", "--no-kv-unified", "--swa-full", "--embedding"}


@dataclass(frozen=True)
class MeasuredModel:
    """A model: its attention kind, and what its file says."""

    name: str
    attention: str
    architecture: str
    vocabulary: int
    facts: Mapping[str, Any]
    """Header values below the architecture's prefix."""
    tensors: tuple[TensorInfo, ...]
    header: GgufHeader
    shape: ModelShape
    table: TensorTable


@dataclass(frozen=True)
class MeasuredRow:
    """One answer of the engine. Devices are `RPC0`, `RPC1`, `Host` and `CPU_REPACK`, as it names them."""

    model: str
    source: str
    arguments: str
    gpus: int
    devices: Mapping[str, Sequence[int]]
    """Weights, caches and compute buffer of each device in whole MiB."""
    kv_mib: float
    state_mib: float
    compute_mib: Mapping[str, float]
    """Compute buffers to two decimals, by device; empty for rows of several GPUs."""

    @property
    def name(self) -> str:
        """For a test's id."""
        return f"{self.model} {self.arguments} on {self.gpus}"


@functools.cache
def measured_models() -> Mapping[str, MeasuredModel]:
    """All models by name."""
    return {name: _model(name, entry) for name, entry in _read("models").items()}


@functools.cache
def measured_rows() -> tuple[MeasuredRow, ...]:
    """All rows."""
    return tuple(
        MeasuredRow(
            model=row["model"],
            source=row["set"],
            arguments=row["arguments"],
            gpus=row["gpus"],
            devices=row["devices"],
            kv_mib=row["kv_mib"],
            state_mib=row["state_mib"],
            compute_mib=row["compute_mib"],
        )
        for row in _read("rows")
    )


def read_arguments(arguments: str, gpus: int) -> tuple[CacheSettings, Hardware, Offload]:
    """What a command line of a row asks the planner for."""
    values, flags = _split(arguments.split())
    settings = CacheSettings(
        n_ctx=int(values["-c"]),
        slots=int(values["-np"]),
        key_type=values.get("-ctk", "f16"),
        value_type=values.get("-ctv", "f16"),
        unified="--kv-unified" in flags or values["-np"] == "1",
        swa_full="--swa-full" in flags,
        batch=int(values.get("-b", "2048")),
        ubatch=int(values.get("-ub", "512")),
        flash_attention=values.get("-fa", "on") == "on",
        embeddings="--embedding" in flags,
    )
    devices = tuple(GpuBudget(f"RPC{n}", GPU_BYTES, GPU_BYTES, "rpc") for n in range(gpus))
    offload = Offload(
        gpu_layers=int(values["-ngl"]) if "-ngl" in values else None,
        cpu_experts=int(values.get("--n-cpu-moe", "0")),
        split=tuple(float(share) for share in values.get("-ts", "").split(",") if share),
    )
    return settings, Hardware(devices), offload


def _split(tokens: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    values, flags = {}, set()
    rest = iter(tokens)
    for token in rest:
        if token in FLAGS:
            flags.add(token)
        else:
            values[token] = next(rest)
    return values, flags


def make_model(
    name: str,
    attention: str,
    architecture: str,
    vocabulary: int,
    facts: Mapping[str, Any],
    tensors: Sequence[TensorInfo],
) -> MeasuredModel:
    """A model from its header values and tensor directory."""
    header = header_of(_pairs(architecture, vocabulary, facts))
    return MeasuredModel(
        name=name,
        attention=attention,
        architecture=architecture,
        vocabulary=vocabulary,
        facts=facts,
        tensors=tuple(tensors),
        header=header,
        shape=shape_of(with_window(header)),
        table=table_of(tensors),
    )


def _model(name: str, entry: Mapping[str, Any]) -> MeasuredModel:
    tensors = tuple(_tensors(entry["tensors"]))
    known = (entry["attention"], entry["architecture"], entry["vocabulary"], entry["facts"])
    return make_model(name, *known, tensors)


def _pairs(architecture: str, vocabulary: int, facts: Mapping[str, Any]) -> Pairs:
    pairs = Pairs(texts={ARCHITECTURE: architecture}, counts={TOKENS: vocabulary})
    for key, value in facts.items():
        full = f"{architecture}.{key}"
        if isinstance(value, bool):
            pairs.flags[full] = value
        elif isinstance(value, int):
            pairs.numbers[full] = value
        elif isinstance(value, list):
            pairs.arrays[full] = tuple(int(element) for element in value)
    return pairs


def _tensors(patterns: Mapping[str, Sequence[tuple[int, list[int], int]]]) -> Iterator[TensorInfo]:
    for pattern, entries in patterns.items():
        for layer, dims, type_id in entries:
            known = GGML_TYPES[type_id]
            size = math.prod(dims) // known.block_elements * known.block_bytes
            yield TensorInfo(pattern.replace("*", str(layer)), tuple(dims), type_id, 0, size)


def _read(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
