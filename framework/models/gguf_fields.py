"""Header keys and what they mean (02 §2.7-2.10). Pure: pairs in, `GgufHeader` out.

Architecture keys are matched after all pairs were read, since nothing forces a writer to name the
architecture first. A field that is None is unset; zero is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ARCHITECTURE = "general.architecture"
TEMPLATE = "tokenizer.chat_template"
TOKENS = "tokenizer.ggml.tokens"
CANVAS = "diffusion.canvas_length"
AUDIO = "clip.has_audio_encoder"
SIZE_LABEL = "general.size_label"
ALIGNMENT = "general.alignment"
ORIGIN_KEYS = {
    "hf_repository": "general.source.huggingface.repository",
    "source_url": "general.source.url",
    "source_repo_url": "general.source.repo_url",
    "base_repo_url": "general.base_model.0.repo_url",
    "base_organization": "general.base_model.0.organization",
    "base_name": "general.base_model.0.name",
    "organization": "general.organization",
    "basename": "general.basename",
}
GLOBAL_KEYS = frozenset(
    {ARCHITECTURE, TEMPLATE, TOKENS, CANVAS, AUDIO, SIZE_LABEL, ALIGNMENT, *ORIGIN_KEYS.values()}
)
# Scalar fields and their keys below `<architecture>.`.
SCALAR_FIELDS = {
    "context_length": "context_length",
    "n_layers": "block_count",
    "n_experts": "expert_count",
    "leading_dense_layers": "leading_dense_block_count",
    "embedding_length": "embedding_length",
    "key_length": "attention.key_length",
    "value_length": "attention.value_length",
    "sliding_window": "attention.sliding_window",
    "full_attention_interval": "full_attention_interval",
    "kv_lora_rank": "attention.kv_lora_rank",
    "key_length_mla": "attention.key_length_mla",
    "value_length_mla": "attention.value_length_mla",
    "rope_dimension_count": "rope.dimension_count",
    "key_length_swa": "attention.key_length_swa",
    "value_length_swa": "attention.value_length_swa",
    "shared_kv_layers": "attention.shared_kv_layers",
    "ssm_inner_size": "ssm.inner_size",
    "ssm_state_size": "ssm.state_size",
    "ssm_conv_kernel": "ssm.conv_kernel",
    "ssm_group_count": "ssm.group_count",
    "nextn_layers": "nextn_predict_layers",
}
KV_HEADS = "attention.head_count_kv"
# Fields that may be given per layer; the largest counts.
LARGEST_FIELDS = {
    "n_kv_heads": KV_HEADS,
    "n_heads": "attention.head_count",
    "feed_forward_length": "feed_forward_length",
}
WINDOW_PATTERN = "attention.sliding_window_pattern"
RECURRENT = "attention.recurrent_layers"
VOCABULARY = "vocab_size"
SUFFIXES = frozenset(
    {*SCALAR_FIELDS.values(), *LARGEST_FIELDS.values(), WINDOW_PATTERN, RECURRENT, VOCABULARY}
)
# A mask is one flag per layer; a header that claims more layers than this is not describing a model.
LAYER_LIMIT = 65_536


@dataclass(frozen=True)
class OriginHints:
    """Where a file says it comes from; None where it says nothing."""

    hf_repository: str | None = None
    source_url: str | None = None
    source_repo_url: str | None = None
    base_repo_url: str | None = None
    base_organization: str | None = None
    base_name: str | None = None
    organization: str | None = None
    basename: str | None = None


@dataclass(frozen=True)
class GgufHeader:
    """Facts of one header. Lengths are tokens or elements, masks have one entry per layer."""

    architecture: str | None = None
    is_diffusion: bool = False
    chat_template: str | None = None
    context_length: int | None = None
    n_layers: int | None = None
    n_experts: int | None = None
    leading_dense_layers: int | None = None
    n_kv_heads: int | None = None
    n_kv_heads_by_layer: tuple[int, ...] | None = None
    n_heads: int | None = None
    embedding_length: int | None = None
    feed_forward_length: int | None = None
    vocab_size: int | None = None
    key_length: int | None = None
    value_length: int | None = None
    sliding_window: int | None = None
    swa_period: int | None = None
    swa_mask: tuple[bool, ...] | None = None
    """True where a layer attends to the sliding window only."""
    full_attention_interval: int | None = None
    recurrent_mask: tuple[bool, ...] | None = None
    kv_lora_rank: int | None = None
    key_length_mla: int | None = None
    value_length_mla: int | None = None
    rope_dimension_count: int | None = None
    key_length_swa: int | None = None
    value_length_swa: int | None = None
    shared_kv_layers: int | None = None
    ssm_inner_size: int | None = None
    ssm_state_size: int | None = None
    ssm_conv_kernel: int | None = None
    ssm_group_count: int | None = None
    nextn_layers: int | None = None
    has_audio_encoder: bool | None = None
    size_label: str | None = None
    origin: OriginHints = OriginHints()


@dataclass
class Pairs:
    """Wanted values by full key and kind. One key may stand in several kinds when a file repeats it."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Element count of every wanted array, whatever its elements are."""


def is_wanted(key: str) -> bool:
    """Whether a pair is decoded: a global key, or a known key of any architecture."""
    return key in GLOBAL_KEYS or key.partition(".")[2] in SUFFIXES


def header_of(pairs: Pairs) -> GgufHeader:
    """The facts in `pairs`, with the derivations of 02 §2.10 that need nothing but the header."""
    architecture = pairs.texts.get(ARCHITECTURE)
    prefix = f"{architecture}."
    numbers: dict[str, Any] = {
        name: _count(pairs.numbers, prefix + suffix) for name, suffix in SCALAR_FIELDS.items()
    } | {name: _largest(pairs, prefix + suffix) for name, suffix in LARGEST_FIELDS.items()}
    return GgufHeader(
        architecture=architecture,
        is_diffusion=_is_diffusion(architecture, pairs),
        chat_template=pairs.texts.get(TEMPLATE),
        n_kv_heads_by_layer=_counts(pairs, prefix + KV_HEADS),
        vocab_size=pairs.counts.get(TOKENS, _count(pairs.numbers, prefix + VOCABULARY)),
        recurrent_mask=_recurrent_mask(pairs, prefix + RECURRENT, numbers["n_layers"]),
        has_audio_encoder=pairs.flags.get(AUDIO),
        size_label=pairs.texts.get(SIZE_LABEL),
        origin=OriginHints(**{name: pairs.texts.get(key) for name, key in ORIGIN_KEYS.items()}),
        **_window(pairs, prefix + WINDOW_PATTERN, numbers["n_layers"]),
        **numbers,
    )


def _count(numbers: Mapping[str, int], key: str) -> int | None:
    value = numbers.get(key)
    return value if value is not None and value >= 0 else None


def _counts(pairs: Pairs, key: str) -> tuple[int, ...] | None:
    values = pairs.arrays.get(key)
    return values if values and min(values) >= 0 else None


def _largest(pairs: Pairs, key: str) -> int | None:
    scalar = _count(pairs.numbers, key)
    if scalar is not None:
        return scalar
    by_layer = _counts(pairs, key)
    return max(by_layer) if by_layer else None


def _is_diffusion(architecture: str | None, pairs: Pairs) -> bool:
    return CANVAS in pairs.numbers or (architecture or "").lower().startswith("diffusion")


def _window(pairs: Pairs, key: str, n_layers: int | None) -> dict[str, Any]:
    """Period and mask (02 §2.9.5, §5.1): each `period`-th layer sees everything; a given mask outranks it."""
    given = pairs.arrays.get(key)
    if given:
        return {"swa_period": None, "swa_mask": tuple(value != 0 for value in given)}
    period = _count(pairs.numbers, key) or None
    if period is None or n_layers is None or n_layers > LAYER_LIMIT:
        return {"swa_period": period, "swa_mask": None}
    return {"swa_period": period, "swa_mask": tuple(i % period < period - 1 for i in range(n_layers))}


def _recurrent_mask(pairs: Pairs, key: str, n_layers: int | None) -> tuple[bool, ...] | None:
    """One flag per layer, or one for all of them."""
    given = pairs.arrays.get(key)
    if given:
        return tuple(value != 0 for value in given)
    for_all = pairs.flags.get(key, _count(pairs.numbers, key))
    if for_all is None or n_layers is None or n_layers > LAYER_LIMIT:
        return None
    return (bool(for_all),) * n_layers
