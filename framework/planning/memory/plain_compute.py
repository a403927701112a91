"""Compute buffers by the plain formulas of 03 §7 and §8, for models whose operations we cannot build. Pure.

What they say is a guess with room to spare; lines made from it are `assumed`.
"""

from __future__ import annotations

from framework.planning.memory.settings import F16_BYTES, MICRO_BATCH, CacheSettings, bytes_per_element
from framework.planning.memory.shape import ModelShape

MIB = 1 << 20
F32_BYTES = 4
SAFETY = 1.15
# Activations of a layer, in widths of the embedding.
WIDTHS = 4
# Where not even the vocabulary is known.
FALLBACK_BYTES = 5120 * MIB
# Bytes per token of context, from logs of many models (03 §8).
MASK_BYTES_PER_TOKEN = 2 * 1.5
SCRATCH_PER_WIDTH, LATENT_SCRATCH_PER_WIDTH = 2.25, 1.25
INDEXER_ARCHITECTURE, INDEXER_BYTES, INDEXER_BYTES_PER_TOKEN = "deepseek4", 2048 * MIB, 72_000
BANDED_ARCHITECTURE, BANDED_BYTES_PER_TOKEN, DENSE_BYTES_PER_TOKEN = "inkling", 8_192, 402_470


def plain_compute_bytes(shape: ModelShape, settings: CacheSettings) -> int:
    """Buffer of one device: a flat part, and one that grows with the context."""
    flat = flat_bytes(shape, settings.slots, settings.ubatch) or FALLBACK_BYTES
    heavier = max((settings.key_type, settings.value_type), key=bytes_per_element)
    return flat + growth_bytes(shape, settings.n_ctx, settings.ubatch, heavier)


def flat_bytes(shape: ModelShape, slots: int, ubatch: int | None) -> int:
    """03 §7.1; 0 where vocabulary or width are unknown."""
    vocabulary, width = shape.vocab_size or 0, shape.embedding_length or 0
    if vocabulary <= 0 or width <= 0:
        return 0
    tokens = max(1, MICRO_BATCH if ubatch is None else ubatch)
    activations = WIDTHS * width * tokens * F32_BYTES
    logits = vocabulary * tokens * F32_BYTES
    return int((activations + logits * (max(1, slots) - 1)) * SAFETY)


def growth_bytes(shape: ModelShape, n_ctx: int, ubatch: int, cache_type: str | None) -> int:
    """03 §8, on top of the flat part."""
    width = shape.embedding_length or 0
    if width <= 0 or n_ctx <= 0:
        return 0
    scale = ubatch / MICRO_BATCH
    is_quantised = bytes_per_element(cache_type) < F16_BYTES
    if shape.architecture == INDEXER_ARCHITECTURE:
        return int(INDEXER_BYTES + INDEXER_BYTES_PER_TOKEN * n_ctx * scale)
    if shape.architecture == BANDED_ARCHITECTURE:
        per_token = DENSE_BYTES_PER_TOKEN if is_quantised else BANDED_BYTES_PER_TOKEN
        return int(per_token * n_ctx * scale)
    if is_quantised:
        rate = LATENT_SCRATCH_PER_WIDTH if shape.key_length_mla else SCRATCH_PER_WIDTH
        return int(rate * width * scale * n_ctx)
    return int(ubatch * MASK_BYTES_PER_TOKEN * n_ctx)
