"""The tensor directory of a GGUF file, and whether its data is all there (02 §2.14).

Read on demand: by file_set before a file is served, later by the memory model.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from framework.models.gguf_fields import ALIGNMENT
from framework.models.gguf_header import RawHeader, open_gguf, os_cause, read_pairs
from framework.models.gguf_stream import KEY_LIMIT_BYTES, GgufFault, GgufStream, HeaderStatus

# The smallest entry: an empty name (8), no dimensions (4), type (4), offset (8).
TENSOR_BYTES = 24
# The largest mixtures of experts hold some thousands.
TENSOR_LIMIT = 2**20
DIMENSION_LIMIT = 4
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True)
class TensorInfo:
    """One entry. `dims` are elements, `offset` is from the data start; `bytes` is None for unknown types."""

    name: str
    dims: tuple[int, ...]
    type: int
    offset: int
    bytes: int | None


@dataclass(frozen=True)
class TensorResult:
    """The directory and how reading it ended. `missing_bytes` is what the file lacks at its end."""

    status: HeaderStatus
    detail: str = ""
    tensors: tuple[TensorInfo, ...] = ()
    missing_bytes: int = 0


def read_tensors(path: Path) -> TensorResult:
    """The directory of a local file. Never raises; the status is that of the header if that is not `ok`."""
    try:
        with open_gguf(path) as (file, size):
            return parse_tensors(file, size)
    except GgufFault as fault:
        return TensorResult(fault.status, fault.detail)
    except OSError as error:
        return TensorResult("unreadable", os_cause(error))


def parse_tensors(file: BinaryIO, size: int) -> TensorResult:
    """The directory of a file whose `size` bytes are all there."""
    stream = GgufStream(file, size)
    raw = read_pairs(stream)
    if raw.status != "ok":
        return TensorResult(raw.status, raw.detail)
    try:
        tensors = _read_directory(stream, raw)
        missing = _missing_bytes(tensors, _data_start(stream.at, raw), size)
    except GgufFault as fault:
        return TensorResult(fault.status, fault.detail)
    if missing > 0:
        detail = f"tensor data ends {missing} bytes behind the end of the file"
        return TensorResult("truncated", detail, tensors, missing)
    return TensorResult("ok", "", tensors)


def _read_directory(stream: GgufStream, raw: RawHeader) -> tuple[TensorInfo, ...]:
    count = raw.tensor_count
    if count > TENSOR_LIMIT or count * TENSOR_BYTES > stream.left:
        raise GgufFault("corrupt", f"claims {count} tensors, more than the file can hold")
    return tuple(_read_tensor(stream) for _ in range(count))


def _read_tensor(stream: GgufStream) -> TensorInfo:
    name = stream.text(KEY_LIMIT_BYTES).decode("utf-8", "replace")
    dimensions = stream.number("<I")
    if dimensions > DIMENSION_LIMIT:
        raise GgufFault("corrupt", f"a tensor with {dimensions} dimensions")
    dims = stream.numbers("<Q", dimensions)
    type_id = stream.number("<I")
    return TensorInfo(name, dims, type_id, stream.number("<Q"), _data_bytes(dims, type_id))


def _data_bytes(dims: tuple[int, ...], type_id: int) -> int | None:
    known = _type_sizes().get(type_id)
    if known is None:
        return None
    block_elements, block_bytes = known
    return -(-math.prod(dims) // block_elements) * block_bytes


@functools.cache
def _type_sizes() -> Mapping[int, tuple[int, int]]:
    """Elements and bytes per block, by ggml type. Imported late: the package brings numpy with it."""
    from gguf.constants import GGML_QUANT_SIZES

    return {int(ggml_type): sizes for ggml_type, sizes in GGML_QUANT_SIZES.items()}


def _data_start(directory_end: int, raw: RawHeader) -> int:
    alignment = raw.pairs.numbers.get(ALIGNMENT, DEFAULT_ALIGNMENT)
    if alignment <= 0:
        raise GgufFault("corrupt", f"an alignment of {alignment}")
    return -(-directory_end // alignment) * alignment


def _missing_bytes(tensors: tuple[TensorInfo, ...], data_start: int, size: int) -> int:
    ends = (data_start + tensor.offset + tensor.bytes for tensor in tensors if tensor.bytes is not None)
    return max(0, max(ends, default=0) - size)
