"""The tensor directory of a GGUF file, and whether its data is all there (02 §2.14).

Read together with the header by file_set before a file is served, and by facts for the memory model.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from framework.models.ggml_types import GGML_TYPES
from framework.models.gguf_fields import ALIGNMENT, GgufHeader, header_of
from framework.models.gguf_header import RawHeader, open_gguf, os_cause, read_pairs
from framework.models.gguf_stream import GgufFault, GgufStream, HeaderStatus

# The smallest entry: an empty name (8), no dimensions (4), type (4), offset (8).
TENSOR_BYTES = 24
# The largest mixtures of experts hold some ten thousands, ggml itself stops at names of 63 bytes.
TENSOR_LIMIT = 2**17
NAME_LIMIT_BYTES = 255
# The largest models have 2^40 parameters. Sums over all tensors stay below 2^63, so that they can be written.
ELEMENT_LIMIT = 2**45
# Dimensions, type and offset of an entry, by number of dimensions.
ENTRY_FORMS = tuple(struct.Struct(f"<{dimensions}QIQ") for dimensions in range(5))
DEFAULT_ALIGNMENT = 32


class TensorInfo(NamedTuple):
    """One entry. `dims` are elements, `offset` is from the data start; `bytes` is None for unknown types.

    A tuple, since thousands of them are made for one model.
    """

    name: str
    dims: tuple[int, ...]
    type: int
    offset: int
    bytes: int | None


@dataclass(frozen=True)
class TensorResult:
    """Header and directory of one file, and how reading them ended."""

    status: HeaderStatus
    detail: str = ""
    tensors: tuple[TensorInfo, ...] = ()
    missing_bytes: int = 0
    """What the file lacks at its end."""
    header: GgufHeader = field(default_factory=GgufHeader)
    data_start: int = 0
    """Where tensor data begins, in bytes from the start of the file."""
    needed_bytes: int = 0
    """How long the file would have to be: exact for data, a lower bound or guess for a header."""


def read_tensors(path: Path) -> TensorResult:
    """Header and directory of a local file. Never raises; a fault of the header comes first."""
    try:
        with open_gguf(path) as (file, size):
            return parse_tensors(file, size)
    except GgufFault as fault:
        return TensorResult(fault.status, fault.detail)
    except OSError as error:
        return TensorResult("unreadable", os_cause(error))


def parse_tensors(file: BinaryIO, size: int, *, total_bytes: int | None = None) -> TensorResult:
    """Header and directory of a file of which `size` bytes are there, out of `total_bytes` (default: all)."""
    stream = GgufStream(file, size, total_bytes)
    raw = read_pairs(stream)
    header = header_of(raw.pairs)
    if raw.status != "ok":
        return TensorResult(raw.status, raw.detail, header=header, needed_bytes=raw.needed_bytes)
    try:
        tensors = _read_directory(stream, raw)
        data_start = _data_start(stream.at, raw)
    except GgufFault as fault:
        return TensorResult(fault.status, fault.detail, header=header, needed_bytes=fault.needed_bytes)
    return _judge(tensors, header, data_start, stream.total_bytes)


def _judge(tensors: tuple[TensorInfo, ...], header: GgufHeader, data_start: int, size: int) -> TensorResult:
    """Whether the data is all there. Only offsets and sizes count; names are the engine's business."""
    cut = [tensor for tensor in tensors if _data_end(tensor, data_start) > size]
    if not cut:
        return TensorResult("ok", "", tensors, header=header, data_start=data_start)
    needed = max(_data_end(tensor, data_start) for tensor in cut)
    first = min(cut, key=lambda tensor: tensor.offset)
    detail = f"it has {size} of at least {needed} bytes, and tensor {first.name!r} is the first cut one"
    return TensorResult("truncated", detail, tensors, needed - size, header, data_start, needed)


def _read_directory(stream: GgufStream, raw: RawHeader) -> tuple[TensorInfo, ...]:
    count = raw.tensor_count
    if count > TENSOR_LIMIT or not stream.can_hold(count, TENSOR_BYTES):
        raise GgufFault("corrupt", f"claims {count} tensors, more than the file can hold")
    start = stream.at
    tensors: list[TensorInfo] = []
    try:
        for _ in range(count):
            tensors.append(_read_tensor(stream))
    except GgufFault as fault:
        mean_bytes = (stream.size - start) / max(1, len(tensors))
        left = count - len(tensors)
        if fault.needed_bytes:
            fault.needed_bytes = max(fault.needed_bytes, stream.size + int(mean_bytes * left))
        raise
    return tuple(tensors)


def _read_tensor(stream: GgufStream) -> TensorInfo:
    name = stream.text(NAME_LIMIT_BYTES).decode("utf-8", "replace")
    dimensions = stream.number("<I")
    if dimensions >= len(ENTRY_FORMS):
        raise GgufFault("corrupt", f"a tensor with {dimensions} dimensions")
    form = ENTRY_FORMS[dimensions]
    *dims, type_id, offset = form.unpack(stream.take(form.size))
    if math.prod(dims) > ELEMENT_LIMIT:
        raise GgufFault("corrupt", f"a tensor of {' x '.join(map(str, dims))} elements")
    return TensorInfo(name, tuple(dims), type_id, offset, _data_bytes(dims, type_id))


def _data_bytes(dims: list[int], type_id: int) -> int | None:
    known = GGML_TYPES.get(type_id)
    if known is None:
        return None
    return -(-math.prod(dims) // known.block_elements) * known.block_bytes


def _data_start(directory_end: int, raw: RawHeader) -> int:
    alignment = raw.pairs.numbers.get(ALIGNMENT, DEFAULT_ALIGNMENT)
    if alignment <= 0:
        raise GgufFault("corrupt", f"an alignment of {alignment}")
    return -(-directory_end // alignment) * alignment


def _data_end(tensor: TensorInfo, data_start: int) -> int:
    """In bytes from the start of the file."""
    return data_start + tensor.offset + (tensor.bytes or 0)
