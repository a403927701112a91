"""Small models that rank: a decoder with a template of its own, and an encoder. Their scores are noise.

The noise is the same in every run, and the scores of two texts are far apart.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy

from tests.support.working_models import (
    CONTEXT_TRAINED,
    EMBEDDING,
    FEED_FORWARD,
    HEADS,
    LAYERS,
    SEED,
    add_byte_vocabulary,
    begin,
    finish,
)

RANK_TEMPLATE = "<s>Query: {query}\nDocument: {document}\nRelevant:</s>"
WORD_START = "\u2581"
WORDS = ("the", "mill", "river", "by", "a", "of", "king", "queen", "colour", "red", "green")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,?{}:"
SEGMENTS = 2


class _Noise:
    """Weights of a normal distribution, from one seed."""

    def __init__(self, writer: gguf.GGUFWriter) -> None:
        self._writer = writer
        self._random = numpy.random.default_rng(SEED)

    def add(self, name: str, *shape: int, middle: float = 0.0) -> None:
        """A tensor of rows and columns, or of columns alone."""
        noise = self._random.normal(middle, 0.2, shape).astype(numpy.float32)
        self._writer.add_tensor(name, noise)

    def add_linear(self, name: str, n_out: int, n_in: int) -> None:
        """A matrix and what is added to its product."""
        self.add(f"{name}.weight", n_out, n_in)
        self.add(f"{name}.bias", n_out)

    def add_norm(self, name: str) -> None:
        """Scale and shift."""
        self.add(f"{name}.weight", EMBEDDING, middle=1.0)
        self.add(f"{name}.bias", EMBEDDING)


def write_decoder_ranker(path: Path) -> Path:
    """As the reranking models of the Qwen3 family: two labels, of which the first is the score."""
    writer = begin(path, "qwen3", "Noisy decoder ranker")
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    writer.add_chat_template([{"name": "rerank", "template": RANK_TEMPLATE}])
    noise, vocabulary = _Noise(writer), add_byte_vocabulary(writer)
    noise.add("token_embd.weight", vocabulary, EMBEDDING)
    noise.add("output_norm.weight", EMBEDDING, middle=1.0)
    noise.add("cls.output.weight", 2, EMBEDDING)
    for layer in range(LAYERS):
        for norm, width in (
            ("attn_norm", EMBEDDING),
            ("attn_q_norm", EMBEDDING // HEADS),
            ("attn_k_norm", EMBEDDING // HEADS),
            ("ffn_norm", EMBEDDING),
        ):
            noise.add(f"blk.{layer}.{norm}.weight", width, middle=1.0)
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            noise.add(f"blk.{layer}.{square}.weight", EMBEDDING, EMBEDDING)
        for wide in ("ffn_gate", "ffn_up"):
            noise.add(f"blk.{layer}.{wide}.weight", FEED_FORWARD, EMBEDDING)
        noise.add(f"blk.{layer}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
    return finish(writer, path)


def write_encoder_ranker(path: Path) -> Path:
    """As the cross-encoders of the BERT family: the first token is classified."""
    writer = begin(path, "bert", "Noisy encoder ranker")
    writer.add_causal_attention(False)
    writer.add_layer_norm_eps(1e-5)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    noise, vocabulary = _Noise(writer), _add_words(writer)
    noise.add("token_embd.weight", vocabulary, EMBEDDING)
    noise.add("position_embd.weight", CONTEXT_TRAINED, EMBEDDING)
    noise.add("token_types.weight", SEGMENTS, EMBEDDING)
    noise.add_norm("token_embd_norm")
    noise.add_linear("cls", EMBEDDING, EMBEDDING)
    noise.add_linear("cls.output", 1, EMBEDDING)
    for layer in range(LAYERS):
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            noise.add_linear(f"blk.{layer}.{square}", EMBEDDING, EMBEDDING)
        noise.add_linear(f"blk.{layer}.ffn_up", FEED_FORWARD, EMBEDDING)
        noise.add_linear(f"blk.{layer}.ffn_down", EMBEDDING, FEED_FORWARD)
        for norm in ("attn_output_norm", "layer_output_norm"):
            noise.add_norm(f"blk.{layer}.{norm}")
    return finish(writer, path)


def _add_words(writer: gguf.GGUFWriter) -> int:
    """A vocabulary of words and letters; a pair of texts is told apart by its special tokens."""
    special = {"[PAD]": gguf.TokenType.UNUSED, "[UNK]": gguf.TokenType.UNKNOWN}
    special |= dict.fromkeys(("[CLS]", "[SEP]", "[MASK]"), gguf.TokenType.CONTROL)
    words = [*(WORD_START + letter for letter in LETTERS), *LETTERS]
    words += [WORD_START + word for word in WORDS if len(word) > 1]
    tokens = [*special, *words]
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_types([*special.values(), *[gguf.TokenType.NORMAL] * len(words)])
    writer.add_token_type_count(SEGMENTS)
    names = list(special)
    writer.add_pad_token_id(names.index("[PAD]"))
    writer.add_unk_token_id(names.index("[UNK]"))
    writer.add_bos_token_id(names.index("[CLS]"))
    writer.add_sep_token_id(names.index("[SEP]"))
    writer.add_mask_token_id(names.index("[MASK]"))
    return len(tokens)
