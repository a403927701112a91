"""Write GGUF files byte by byte, right ones and wrong ones (02 §2.1-2.2, §2.14)."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from framework.models.gguf_tensors import TensorResult, parse_tensors

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {
    U8: "<B",
    I8: "<b",
    U16: "<H",
    I16: "<h",
    U32: "<I",
    I32: "<i",
    F32: "<f",
    BOOL: "<B",
    U64: "<Q",
    I64: "<q",
    F64: "<d",
}
F32_TENSOR, Q4_0_TENSOR = 0, 2


@dataclass(frozen=True)
class Array:
    """A value of type ARRAY."""

    type: int
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Tensor:
    """An entry of the tensor directory."""

    name: str = "w"
    dims: tuple[int, ...] = (32,)
    type: int = F32_TENSOR
    offset: int = 0


def text(value: str | bytes) -> bytes:
    """A length and the bytes."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value_bytes(type_id: int, value: Any) -> bytes:
    """One value without its type."""
    if type_id == STRING:
        return text(value)
    if type_id == ARRAY:
        items = b"".join(value_bytes(value.type, item) for item in value.items)
        return struct.pack("<IQ", value.type, len(value.items)) + items
    return struct.pack(FORMATS[type_id], value)


def pair(key: str | bytes, type_id: int, value: Any) -> bytes:
    """One key-value pair."""
    return text(key) + struct.pack("<I", type_id) + value_bytes(type_id, value)


def tensor_bytes(tensor: Tensor) -> bytes:
    """One directory entry."""
    dims = struct.pack(f"<I{len(tensor.dims)}Q", len(tensor.dims), *tensor.dims)
    return text(tensor.name) + dims + struct.pack("<IQ", tensor.type, tensor.offset)


def gguf(
    *pairs: bytes,
    tensors: tuple[Tensor, ...] = (),
    data: int = 0,
    version: bytes = b"\3\0\0\0",
    alignment: int = 32,
) -> bytes:
    """A whole file: header, directory, padding, and `data` zero bytes."""
    head = b"GGUF" + version + struct.pack("<QQ", len(tensors), len(pairs))
    head += b"".join(pairs) + b"".join(tensor_bytes(tensor) for tensor in tensors)
    return head + bytes(-len(head) % alignment) + bytes(data)


def llama(*more: bytes) -> bytes:
    """A small dense model, three tokens, one tensor, everything there."""
    return gguf(
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", U32, 32),
        pair("llama.context_length", U64, 8192),
        pair("llama.attention.head_count", I32, 32),
        pair("tokenizer.ggml.tokens", ARRAY, Array(STRING, ("a", "b", "c"))),
        *more,
        tensors=(Tensor(dims=(4, 8)),),
        data=128,
    )


class CountedFile(io.FileIO):
    """A file that counts what is read of it: a measure of work that no load of the machine changes."""

    calls = 0
    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """As the base class."""
        data = super().read(size) or b""
        self.calls += 1
        self.bytes_read += len(data)
        return data


def parse_counted(path: Path) -> tuple[TensorResult, CountedFile]:
    """Header and directory of a file, and how much of it was read for that."""
    with CountedFile(path) as file:
        return parse_tensors(cast(BinaryIO, file), path.stat().st_size), file
