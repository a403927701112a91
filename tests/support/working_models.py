"""Model files of a few hundred kilobytes that the real engine loads and runs. What they say is noise."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy

LAYERS = 2
CONTEXT_TRAINED = 2048
EMBEDDING = 64
HEADS = 4
FEED_FORWARD = 128
BYTES = 256
SEED = 1


def write_working_model(path: Path, *, name: str = "Noise") -> Path:
    """A dense model whose tokens are single bytes, with the vocabulary of a SentencePiece model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT_TRAINED)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    vocabulary = add_vocabulary(writer)
    _add_weights(writer, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_vocabulary(writer: gguf.GGUFWriter) -> int:
    """Single bytes and three special tokens. Returns how many tokens there are."""
    special = {"<unk>": gguf.TokenType.UNKNOWN, "<s>": gguf.TokenType.CONTROL, "</s>": gguf.TokenType.CONTROL}
    tokens = [*special, *(f"<0x{number:02X}>" for number in range(BYTES))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([*special.values(), *[gguf.TokenType.BYTE] * BYTES])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return len(tokens)


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = numpy.random.default_rng(SEED)

    def add(name: str, *shape: int) -> None:
        noise = random.normal(0.0, 0.02, shape) if len(shape) > 1 else numpy.ones(shape)
        writer.add_tensor(f"{name}.weight", noise.astype(numpy.float32))

    add("token_embd", vocabulary, EMBEDDING)
    add("output_norm", EMBEDDING)
    add("output", vocabulary, EMBEDDING)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            add(f"blk.{layer}.{norm}", EMBEDDING)
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{square}", EMBEDDING, EMBEDDING)
        for wide in ("ffn_gate", "ffn_up"):
            add(f"blk.{layer}.{wide}", FEED_FORWARD, EMBEDDING)
        add(f"blk.{layer}.ffn_down", EMBEDDING, FEED_FORWARD)
