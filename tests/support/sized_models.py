"""Model files of a few kilobytes whose headers ask for much memory."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_bytes import STRING, U32, Tensor, gguf, pair

TRAINED = 131_072
KV_BYTES_PER_TOKEN = 32 * 8 * 128 * 2 * 2
"""Of the cache in f16: layers, KV heads, head size, K and V, bytes."""


def write_large_model(path: Path, *, has_head: bool = False) -> Path:
    """A dense model whose cache takes 1 GiB for each 8192 tokens, and whose weights take next to nothing.

    `has_head`: it can draft by itself (MTP).
    """
    values = {
        "block_count": 32,
        "context_length": TRAINED,
        "embedding_length": 4096,
        "feed_forward_length": 14_336,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "vocab_size": 128_256,
    }
    if has_head:
        values["nextn_predict_layers"] = 1
    header = [pair("general.architecture", STRING, "llama")]
    header += [pair(f"llama.{name}", U32, value) for name, value in values.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf(*header, tensors=(Tensor("token_embd.weight", (8, 4)),), data=128))
    return path
