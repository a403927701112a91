"""A hybrid model of a few hundred kilobytes that the real engine loads and runs: three layers with a running
state, which libllama can step back, and one with attention. What it says is noise, and depends on its state.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy

from tests.support.working_models import add_byte_vocabulary, finish

LAYERS = 4
ATTENTION_INTERVAL = 4
CONTEXT_TRAINED = 2048
EMBEDDING = 64
FEED_FORWARD = 128
HEADS, KV_HEADS, HEAD = 4, 2, 16
STATE_HEAD, KEY_HEADS, VALUE_HEADS, CONVOLUTION = 16, 2, 4, 4
KEYS, VALUES = STATE_HEAD * KEY_HEADS, STATE_HEAD * VALUE_HEADS
SPREAD = 0.2
"""Of weights; large, so that what a layer adds is not lost beside its input."""
SEED = 3


def write_hybrid_model(path: Path) -> Path:
    """Architecture qwen35, with the vocabulary of `write_working_model`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "qwen35")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT_TRAINED)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_dimension_sections([HEAD // 4, HEAD // 4, 0, 0])
    writer.add_ssm_conv_kernel(CONVOLUTION)
    writer.add_ssm_inner_size(VALUES)
    writer.add_ssm_state_size(STATE_HEAD)
    writer.add_ssm_time_step_rank(VALUE_HEADS)
    writer.add_ssm_group_count(KEY_HEADS)
    writer.add_uint32("qwen35.full_attention_interval", ATTENTION_INTERVAL)
    _add_weights(writer, add_byte_vocabulary(writer))
    return finish(writer, path)


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = numpy.random.default_rng(SEED)

    def add(name: str, *shape: int, mean: float = 0.0) -> None:
        writer.add_tensor(name, random.normal(mean, SPREAD, shape).astype(numpy.float32))

    add("token_embd.weight", vocabulary, EMBEDDING)
    add("output_norm.weight", EMBEDDING, mean=1.0)
    add("output.weight", vocabulary, EMBEDDING)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "post_attention_norm"):
            add(f"{block}.{norm}.weight", EMBEDDING, mean=1.0)
        if (layer + 1) % ATTENTION_INTERVAL == 0:
            add(f"{block}.attn_q.weight", 2 * HEADS * HEAD, EMBEDDING)
            add(f"{block}.attn_k.weight", KV_HEADS * HEAD, EMBEDDING)
            add(f"{block}.attn_v.weight", KV_HEADS * HEAD, EMBEDDING)
            add(f"{block}.attn_output.weight", EMBEDDING, HEADS * HEAD)
            add(f"{block}.attn_q_norm.weight", HEAD, mean=1.0)
            add(f"{block}.attn_k_norm.weight", HEAD, mean=1.0)
        else:
            add(f"{block}.attn_qkv.weight", 2 * KEYS + VALUES, EMBEDDING)
            add(f"{block}.attn_gate.weight", VALUES, EMBEDDING)
            add(f"{block}.ssm_conv1d.weight", 2 * KEYS + VALUES, CONVOLUTION)
            add(f"{block}.ssm_dt.bias", VALUE_HEADS)
            add(f"{block}.ssm_a", VALUE_HEADS, mean=-1.0)
            add(f"{block}.ssm_beta.weight", VALUE_HEADS, EMBEDDING)
            add(f"{block}.ssm_alpha.weight", VALUE_HEADS, EMBEDDING)
            add(f"{block}.ssm_norm.weight", STATE_HEAD, mean=1.0)
            add(f"{block}.ssm_out.weight", EMBEDDING, VALUES)
        add(f"{block}.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
        add(f"{block}.ffn_up.weight", FEED_FORWARD, EMBEDDING)
        add(f"{block}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
