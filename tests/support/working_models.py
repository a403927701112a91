"""Model files of a few hundred kilobytes that the real engine loads and runs. What they say is noise."""

from __future__ import annotations

from collections.abc import Sequence
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
FILL_IN_TOKENS = {
    "<PRE>": gguf.Keys.Tokenizer.FIM_PRE_ID,
    "<SUF>": gguf.Keys.Tokenizer.FIM_SUF_ID,
    "<MID>": gguf.Keys.Tokenizer.FIM_MID_ID,
    "<REPO>": gguf.Keys.Tokenizer.FIM_REP_ID,
    "<SEP>": gguf.Keys.Tokenizer.FIM_SEP_ID,
}
ADAPTER_RANK = 4


def write_working_model(path: Path, *, name: str = "Noise", fills_in: bool = False) -> Path:
    """A dense model whose tokens are single bytes, with the vocabulary of a SentencePiece model.

    `fills_in`: it has the tokens that infill needs, those for repositories and files as well.
    """
    writer = begin(path, "llama", name)
    vocabulary = add_byte_vocabulary(writer, tuple(FILL_IN_TOKENS) if fills_in else ())
    if fills_in:
        for number, key in enumerate(FILL_IN_TOKENS.values()):
            writer.add_uint32(key, vocabulary - len(FILL_IN_TOKENS) + number)
    _add_weights(writer, vocabulary)
    return finish(writer, path)


def write_adapter(path: Path, model: Path, *, seed: int = SEED, invoked_by: Sequence[int] = ()) -> Path:
    """A LoRA adapter of noise for the attention outputs of a dense model, strong enough to change its text.

    `invoked_by`: tokens that switch it on, which makes it an activated one.
    """
    random = numpy.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(ADAPTER_RANK))
    if invoked_by:
        writer.add_key_value(
            gguf.Keys.Adapter.ALORA_INVOCATION_TOKENS,
            list(invoked_by),
            gguf.GGUFValueType.ARRAY,
            sub_type=gguf.GGUFValueType.UINT32,
        )
    for tensor in gguf.GGUFReader(model).tensors:
        if tensor.name.endswith("attn_output.weight"):
            n_in, n_out = (int(length) for length in tensor.shape)
            for part, shape in (("a", (ADAPTER_RANK, n_in)), ("b", (n_out, ADAPTER_RANK))):
                noise = random.normal(0.0, 0.1, shape).astype(numpy.float32)
                writer.add_tensor(f"{tensor.name}.lora_{part}", noise)
    return finish(writer, path)


def begin(path: Path, architecture: str, name: str) -> gguf.GGUFWriter:
    """A writer that knows the sizes of the models here."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT_TRAINED)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    return writer


def finish(writer: gguf.GGUFWriter, path: Path) -> Path:
    """The file is whole."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_byte_vocabulary(writer: gguf.GGUFWriter, extra: Sequence[str] = ()) -> int:
    """One token for each byte, those that begin and end a text, and `extra` control tokens; their number."""
    special = {"<unk>": gguf.TokenType.UNKNOWN, "<s>": gguf.TokenType.CONTROL, "</s>": gguf.TokenType.CONTROL}
    tokens = [*special, *(f"<0x{number:02X}>" for number in range(BYTES)), *extra]
    kinds = [*special.values(), *[gguf.TokenType.BYTE] * BYTES, *[gguf.TokenType.CONTROL] * len(extra)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
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
