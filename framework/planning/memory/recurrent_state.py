"""Bytes of recurrent and convolution states (03 §5.7, as measured). Pure.

A state does not grow with the context. It is kept in f32, once per slot and once more per token that a draft
may have to take back.
"""

from __future__ import annotations

from framework.planning.memory.shape import ModelShape

F32_BYTES = 4
# Kimi's linear attention keeps a convolution each for queries, keys and values.
KDA_CONVOLUTIONS = 3
# RWKV 6 shifts tokens before its attention and before its feed-forward part.
USUAL_TOKEN_SHIFTS = 2


def state_bytes(shape: ModelShape, slots: int, rollback: int = 0) -> int:
    """All layers together. `rollback`: tokens that a draft may have to take back."""
    return sum(state_bytes_by_layer(shape, slots, rollback).values())


def state_bytes_by_layer(shape: ModelShape, slots: int, rollback: int = 0) -> dict[int, int]:
    """Bytes of each layer that keeps a state."""
    convolution, scan = state_elements(shape)
    per_layer = max(1, slots) * (1 + rollback) * F32_BYTES * (convolution + scan)
    return dict.fromkeys(shape.recurrent_layers, per_layer) if per_layer else {}


def state_elements(shape: ModelShape) -> tuple[int, int]:
    """Elements of one sequence in one layer: of the convolution (or token shift), and of the scan."""
    embedding, heads = shape.embedding_length or 0, shape.n_heads or 0
    taps = max(0, (shape.ssm_conv_kernel or 0) - 1)
    if width := shape.wkv_head_length:
        return (shape.token_shifts or USUAL_TOKEN_SHIFTS) * embedding, embedding * width
    if kernel := shape.shortconv_length:
        return embedding * (kernel - 1), 0
    if width := shape.kda_head_length:
        return KDA_CONVOLUTIONS * taps * heads * width, heads * width * width
    inner, state = shape.ssm_inner_size or 0, shape.ssm_state_size or 0
    return taps * (inner + 2 * (shape.ssm_group_count or 0) * state), inner * state
