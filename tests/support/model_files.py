"""Small valid GGUF files for tests that need a model file but no model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy

LAYERS = 2
CONTEXT_TRAINED = 8192
EMBEDDING = 64
HEADS = 4


def write_tiny_gguf(path: Path, *, architecture: str = "llama", name: str = "Tiny") -> Path:
    """A GGUF of a few kilobytes with the header of a small dense model and one tensor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT_TRAINED)
    writer.add_embedding_length(EMBEDDING)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_tensor("token_embd.weight", numpy.zeros((8, EMBEDDING), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
