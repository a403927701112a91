"""Write a GGUF whose header, vocabulary and tensor directory are complete and whose weights are a hole.

An engine that only plans memory reads nothing else, so hundreds of gigabytes take a few megabytes of disk.
Used by memory_accuracy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from framework.models.gguf_tensors import TensorInfo

MAGIC, VERSION = b"GGUF", 3
ALIGNMENT = 32
# Value types of the format.
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
# Tokens that some loaders look up by name.
NAMED_TOKENS = ("<unk>", "<s>", "</s>", "<|endoftext|>", "\u010a")
# Architectures that tell sentences of a pair apart.
PAIRED = frozenset({"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"})
# Keys that stand in a file without the architecture's name.
GLOBAL_KEYS = ("xielu.",)


def write_sparse_gguf(
    path: Path,
    architecture: str,
    vocabulary: int,
    facts: Mapping[str, Any],
    tensors: Iterable[TensorInfo],
) -> None:
    """Write the file. `facts` are header values below the architecture's prefix, floats included."""
    directory, size = _directory(tensors)
    pairs = [*_facts(architecture, facts), *_tokenizer(architecture, vocabulary)]
    head = b"".join(
        [
            MAGIC,
            struct.pack("<IQQ", VERSION, len(directory), len(pairs)),
            *(_text(key) + value for key, value in pairs),
            *directory,
        ]
    )
    start = _aligned(len(head))
    with path.open("wb") as file:
        file.write(head.ljust(start, b"\0"))
        file.truncate(start + size)


def _facts(architecture: str, facts: Mapping[str, Any]) -> Iterable[tuple[str, bytes]]:
    yield "general.architecture", _value(architecture)
    yield "general.name", _value(f"sparse {architecture}")
    for key, value in facts.items():
        yield key if key.startswith(GLOBAL_KEYS) else f"{architecture}.{key}", _value(value)


def _tokenizer(architecture: str, vocabulary: int) -> Iterable[tuple[str, bytes]]:
    tokens = [*NAMED_TOKENS, *(f"t{number}" for number in range(vocabulary))][:vocabulary]
    yield "tokenizer.ggml.model", _value("gpt2")
    yield "tokenizer.ggml.pre", _value("default")
    yield "tokenizer.ggml.tokens", _value(tokens)
    yield "tokenizer.ggml.token_type", _value([1] * vocabulary)
    yield "tokenizer.ggml.merges", _value(["t 0", "t 1"])
    yield "tokenizer.ggml.bos_token_id", _value(1)
    yield "tokenizer.ggml.eos_token_id", _value(2)
    if architecture in PAIRED:
        yield "tokenizer.ggml.token_type_count", _value(2)


def _directory(tensors: Iterable[TensorInfo]) -> tuple[list[bytes], int]:
    """Entries, and the bytes of the data that they speak of."""
    entries, offset = [], 0
    for tensor in tensors:
        count = len(tensor.dims)
        form = f"<I{count}QIQ"
        entries.append(_text(tensor.name) + struct.pack(form, count, *tensor.dims, tensor.type, offset))
        offset = _aligned(offset + (tensor.bytes or 0))
    return entries, offset


def _value(value: object) -> bytes:
    """A typed value: number, flag, text, or a list of one of them."""
    if isinstance(value, list):
        type_id, _ = _scalar(value[0])
        if isinstance(value[0], int) and not isinstance(value[0], bool):
            return struct.pack(f"<IIQ{len(value)}i", ARRAY, INT32, len(value), *value)
        body = b"".join(_scalar(element)[1] for element in value)
        return struct.pack("<IIQ", ARRAY, type_id, len(value)) + body
    type_id, body = _scalar(value)
    return struct.pack("<I", type_id) + body


def _scalar(value: object) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, _text(value)
    raise TypeError(f"GGUF has no type for {value!r}")


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
