"""Model files that no engine could load, each with words of the sentence that has to be said about it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

from tests.models.gguf_bytes import ARRAY, STRING, U32, Tensor, gguf, llama, pair, text

Make = Callable[[Path], Path]
"""Makes the file in a folder of its own; returns what is to be named as the source."""

START = b"GGUF\3\0\0\0"
ARCHITECTURE = pair("general.architecture", STRING, "llama")


def _file(data: bytes, size: int = 0) -> Make:
    def make(folder: Path) -> Path:
        path = folder / "bad.gguf"
        path.write_bytes(data)
        if size:
            os.truncate(path, size)
        return path

    return make


def _head(tensors: int, pairs: int) -> bytes:
    return START + struct.pack("<QQ", tensors, pairs)


def _nested(depth: int) -> bytes:
    inner = struct.pack("<IQ", ARRAY, 1) * depth
    return _head(0, 1) + text("x") + struct.pack("<I", ARRAY) + inner + bytes(64)


def _nothing(folder: Path) -> Path:
    return folder / "bad.gguf"


def _folder(folder: Path) -> Path:
    (folder / "bad.gguf").mkdir()
    return folder / "bad.gguf"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "bad.gguf")
    return folder / "bad.gguf"


def _device(folder: Path) -> Path:
    (folder / "bad.gguf").symlink_to("/dev/zero")
    return folder / "bad.gguf"


def _circle(folder: Path) -> Path:
    (folder / "bad.gguf").symlink_to(folder / "other.gguf")
    (folder / "other.gguf").symlink_to(folder / "bad.gguf")
    return folder / "bad.gguf"


def _below_a_file(folder: Path) -> Path:
    (folder / "file").write_bytes(llama())
    return folder / "file" / "bad.gguf"


def _long_name(folder: Path) -> Path:
    return folder / ("x" * 300 + ".gguf")


def _hidden_name(folder: Path) -> Path:
    path = folder / "bad\n\x1b[31m\u202e.gguf"
    path.write_bytes(b"hello")
    return path


def _shards(*datas: bytes | None) -> Make:
    def make(folder: Path) -> Path:
        for number, data in enumerate(datas, 1):
            if data is not None:
                (folder / f"bad-{number:05d}-of-{len(datas):05d}.gguf").write_bytes(data)
        return folder / f"bad-00001-of-{len(datas):05d}.gguf"

    return make


def _shard(number: int, count: int, architecture: str = "llama", tensor: str = "") -> bytes:
    named = Tensor(tensor or f"blk.{number}.w", (4, 8))
    pairs = (
        pair("general.architecture", STRING, architecture),
        pair("split.no", U32, number),
        pair("split.count", U32, count),
    )
    return gguf(*pairs, tensors=(named,), data=128)


BAD_MODEL_FILES: dict[str, tuple[Make, str]] = {
    "missing": (_nothing, "does not exist"),
    "empty": (_file(b""), "is empty"),
    "a folder": (_folder, "is a directory"),
    "a pipe": (_pipe, "is not a regular file"),
    "a device": (_device, "is not a regular file"),
    "links in a circle": (_circle, "symbolic links"),
    "below a file": (_below_a_file, "does not exist"),
    "a name that is too long": (_long_name, "name too long"),
    "a name with hidden characters": (_hidden_name, "is not a GGUF file"),
    "another format": (_file(b"PK\3\4 and so on"), "is not a GGUF file"),
    "four bytes": (_file(b"GGUF"), "is cut off"),
    "version 1": (_file(b"GGUF\1\0\0\0" + bytes(64)), "has GGUF version 1"),
    "big-endian": (_file(b"GGUF\0\0\0\3" + bytes(64)), "big-endian"),
    "cut in its header": (_file(llama()[:100]), "is cut off"),
    "cut in its data": (_file(llama()[:-1]), "is cut off"),
    "2^60 tensors": (_file(_head(2**60, 0), 2**40), "claims 1152921504606846976 tensors"),
    "2^60 entries": (_file(_head(0, 2**60), 2**40), "claims 1152921504606846976 header entries"),
    "a text of 2^62 bytes": (
        _file(_head(0, 1) + struct.pack("<Q", 2**62), 2**40),
        "4611686018427387904 bytes",
    ),
    "2^62 texts": (
        _file(_head(0, 1) + text("a") + struct.pack("<IIQ", ARRAY, STRING, 2**62), 2**40),
        "elements in the header",
    ),
    "nested lists": (_file(_nested(100)), "nested more than 4 deep"),
    "an unknown type": (
        _file(_head(0, 1) + text("a") + struct.pack("<I", 99) + bytes(64)),
        "unknown type 99",
    ),
    "a tensor of five dimensions": (
        _file(gguf(ARCHITECTURE, tensors=(Tensor(dims=(1, 1, 1, 1, 1)),), data=64)),
        "5 dimensions",
    ),
    "a missing shard": (_shards(_shard(0, 2), None), "are missing"),
    "a shard of another set": (_shards(_shard(0, 2), _shard(1, 3)), "belongs to a set of 3 files, not 2"),
    "shards in the wrong order": (_shards(_shard(1, 2), _shard(0, 2)), "number 2 of the set"),
    "a shard of another architecture": (_shards(_shard(0, 2), _shard(1, 2, "qwen3")), "architecture 'qwen3'"),
    "a tensor in two shards": (_shards(_shard(0, 2, tensor="w"), _shard(1, 2, tensor="w")), "in 2 places"),
    "a damaged second shard": (_shards(_shard(0, 2), _shard(1, 2)[:-1]), "is cut off"),
    "shards glued together": (_file(_shard(0, 5)), "is one of 5 parts"),
}
"""By what is wrong."""
