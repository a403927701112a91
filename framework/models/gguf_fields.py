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
ALIGNMENT = "general.alignment"
# Global texts, numbers and flags that are facts as they stand.
TEXT_FIELDS = {
    "name": "general.name",
    "kind": "general.type",
    "size_label": "general.size_label",
    "tokenizer_model": "tokenizer.ggml.model",
}
NUMBER_FIELDS = {
    "file_type": "general.file_type",
    "split_number": "split.no",
    "split_count": "split.count",
    "split_tensors": "split.tensors.count",
    "vision_projection": "clip.vision.projection_dim",
    "audio_projection": "clip.audio.projection_dim",
}
FLAG_FIELDS = {
    "has_vision_encoder": "clip.has_vision_encoder",
    "has_audio_encoder": "clip.has_audio_encoder",
}
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
    {
        *(ARCHITECTURE, TEMPLATE, TOKENS, CANVAS, ALIGNMENT),
        *TEXT_FIELDS.values(),
        *NUMBER_FIELDS.values(),
        *FLAG_FIELDS.values(),
        *ORIGIN_KEYS.values(),
    }
)
# Scalar fields and their keys below `<architecture>.`.
SCALAR_FIELDS = {
    "context_length": "context_length",
    "n_layers": "block_count",
    "decoder_layers": "decoder_block_count",
    "n_experts": "expert_count",
    "n_experts_used": "expert_used_count",
    "n_experts_shared": "expert_shared_count",
    "expert_feed_forward_length": "expert_feed_forward_length",
    "shared_expert_feed_forward_length": "expert_shared_feed_forward_length",
    "expert_layer_step": "interleave_moe_layer_step",
    "leading_dense_layers": "leading_dense_block_count",
    "embedding_length": "embedding_length",
    "per_layer_embedding_length": "embedding_length_per_layer_input",
    "key_length": "attention.key_length",
    "value_length": "attention.value_length",
    "sliding_window": "attention.sliding_window",
    "full_attention_interval": "full_attention_interval",
    "q_lora_rank": "attention.q_lora_rank",
    "kv_lora_rank": "attention.kv_lora_rank",
    "key_length_mla": "attention.key_length_mla",
    "value_length_mla": "attention.value_length_mla",
    "indexer_key_length": "attention.indexer.key_length",
    "rope_dimension_count": "rope.dimension_count",
    "rope_dimension_count_swa": "rope.dimension_count_swa",
    "key_length_swa": "attention.key_length_swa",
    "value_length_swa": "attention.value_length_swa",
    "shared_kv_layers": "attention.shared_kv_layers",
    "ssm_inner_size": "ssm.inner_size",
    "ssm_state_size": "ssm.state_size",
    "ssm_conv_kernel": "ssm.conv_kernel",
    "ssm_group_count": "ssm.group_count",
    "ssm_time_step_rank": "ssm.time_step_rank",
    "shortconv_length": "shortconv.l_cache",
    "kda_head_length": "kda.head_dim",
    "wkv_head_length": "wkv.head_size",
    "token_shifts": "token_shift_count",
    "pooling_type": "pooling_type",
    "nextn_layers": "nextn_predict_layers",
    "deepstack_layers": "n_deepstack_layers",
}
KV_HEADS = "attention.head_count_kv"
# Fields that may be given per layer; the largest counts.
LARGEST_FIELDS = {
    "n_kv_heads": KV_HEADS,
    "n_heads": "attention.head_count",
    "feed_forward_length": "feed_forward_length",
}
# ... and the fields that keep such lists whole.
LAYER_LISTS = {
    "n_kv_heads_by_layer": KV_HEADS,
    "n_heads_by_layer": "attention.head_count",
    "feed_forward_lengths": "feed_forward_length",
}
CAUSAL = "attention.causal"
PARALLEL_RESIDUAL = "use_parallel_residual"
WINDOW_PATTERN = "attention.sliding_window_pattern"
RECURRENT = "attention.recurrent_layers"
VOCABULARY = "vocab_size"
# Their first layer of each period sees everything, not the last.
FULL_FIRST = frozenset({"cohere2moe", "modern-bert"})
SUFFIXES = frozenset(
    {*SCALAR_FIELDS.values(), *LARGEST_FIELDS.values(), CAUSAL, PARALLEL_RESIDUAL, WINDOW_PATTERN}
    | {RECURRENT, VOCABULARY}
)
# A mask is one flag per layer; a header that claims more layers than this is not describing a model.
LAYER_LIMIT = 65_536
# Names that people read have a line. A chat template is bounded where it is read.
TEXT_LIMIT = 1000
CUT = "\u2026"
# Engines keep these numbers in 32 bits; a larger one is no fact.
NUMBER_LIMIT = 2**31 - 1


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
    name: str | None = None
    kind: str | None = None
    """`model`, `mmproj`, `adapter`, `imatrix`; few writers say it."""
    file_type: int | None = None
    is_diffusion: bool = False
    chat_template: str | None = None
    template_bytes: int | None = None
    """Size of the chat template. One that is not in `chat_template` is too large to be looked into."""
    tokenizer_model: str | None = None
    vocab_size: int | None = None
    context_length: int | None = None
    n_layers: int | None = None
    """Prediction layers included."""
    decoder_layers: int | None = None
    """Of an encoder-decoder, where they differ from `n_layers`."""
    embedding_length: int | None = None
    per_layer_embedding_length: int | None = None
    feed_forward_length: int | None = None
    feed_forward_lengths: tuple[int, ...] | None = None
    n_experts: int | None = None
    n_experts_used: int | None = None
    n_experts_shared: int | None = None
    expert_feed_forward_length: int | None = None
    shared_expert_feed_forward_length: int | None = None
    expert_layer_step: int | None = None
    leading_dense_layers: int | None = None
    n_heads: int | None = None
    n_heads_by_layer: tuple[int, ...] | None = None
    n_kv_heads: int | None = None
    n_kv_heads_by_layer: tuple[int, ...] | None = None
    key_length: int | None = None
    value_length: int | None = None
    key_length_swa: int | None = None
    value_length_swa: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    key_length_mla: int | None = None
    value_length_mla: int | None = None
    indexer_key_length: int | None = None
    rope_dimension_count: int | None = None
    rope_dimension_count_swa: int | None = None
    is_causal: bool | None = None
    pooling_type: int | None = None
    sliding_window: int | None = None
    swa_period: int | None = None
    swa_mask: tuple[bool, ...] | None = None
    """True where a layer attends to the sliding window only."""
    full_attention_interval: int | None = None
    shared_kv_layers: int | None = None
    recurrent_mask: tuple[bool, ...] | None = None
    ssm_inner_size: int | None = None
    ssm_state_size: int | None = None
    ssm_conv_kernel: int | None = None
    ssm_group_count: int | None = None
    ssm_time_step_rank: int | None = None
    shortconv_length: int | None = None
    kda_head_length: int | None = None
    wkv_head_length: int | None = None
    token_shifts: int | None = None
    nextn_layers: int | None = None
    deepstack_layers: int | None = None
    """First layers that take in a picture's features of their own."""
    has_parallel_residual: bool | None = None
    """Whether attention and feed-forward part read the same input, for families that do either."""
    has_vision_encoder: bool | None = None
    has_audio_encoder: bool | None = None
    vision_projection: int | None = None
    """Width of what a projector hands to the model, which is the model's `embedding_length`."""
    audio_projection: int | None = None
    split_number: int | None = None
    """Index of this file in its set, from 0."""
    split_count: int | None = None
    split_tensors: int | None = None
    """Tensors of the whole set."""
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
    template_bytes: int | None = None


def is_wanted(key: str) -> bool:
    """Whether a pair is decoded: a global key, or a known key of any architecture."""
    return key in GLOBAL_KEYS or key.partition(".")[2] in SUFFIXES


def header_of(pairs: Pairs) -> GgufHeader:
    """The facts in `pairs`, with the derivations of 02 §2.10 that need nothing but the header."""
    architecture = pairs.texts.get(ARCHITECTURE)
    prefix = f"{architecture}."
    facts: dict[str, Any] = {name: _text(pairs.texts.get(key)) for name, key in TEXT_FIELDS.items()}
    facts |= {"chat_template": pairs.texts.get(TEMPLATE), "template_bytes": pairs.template_bytes}
    facts |= {name: pairs.flags.get(key) for name, key in FLAG_FIELDS.items()}
    facts |= {name: _count(pairs.numbers, key) for name, key in NUMBER_FIELDS.items()}
    facts |= {name: _count(pairs.numbers, prefix + suffix) for name, suffix in SCALAR_FIELDS.items()}
    facts |= {name: _largest(pairs, prefix + suffix) for name, suffix in LARGEST_FIELDS.items()}
    facts |= {name: _counts(pairs, prefix + suffix) for name, suffix in LAYER_LISTS.items()}
    return GgufHeader(
        architecture=_text(architecture),
        is_diffusion=_is_diffusion(architecture, pairs),
        is_causal=pairs.flags.get(prefix + CAUSAL),
        has_parallel_residual=pairs.flags.get(prefix + PARALLEL_RESIDUAL),
        vocab_size=pairs.counts.get(TOKENS, _count(pairs.numbers, prefix + VOCABULARY)),
        recurrent_mask=_recurrent_mask(pairs, prefix + RECURRENT, facts["n_layers"]),
        origin=OriginHints(**{name: _hint(pairs.texts.get(key)) for name, key in ORIGIN_KEYS.items()}),
        **_window(pairs, prefix + WINDOW_PATTERN, facts["n_layers"], architecture in FULL_FIRST),
        **facts,
    )


def _text(text: str | None) -> str | None:
    """A text with its end cut off where it is too long to be shown."""
    return text if text is None or len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + CUT


def _hint(text: str | None) -> str | None:
    """An address or a name of a place; half of one would lead elsewhere."""
    return text if text is None or len(text) <= TEXT_LIMIT else None


def _count(numbers: Mapping[str, int], key: str) -> int | None:
    value = numbers.get(key)
    return value if value is not None and 0 <= value <= NUMBER_LIMIT else None


def _counts(pairs: Pairs, key: str) -> tuple[int, ...] | None:
    values = pairs.arrays.get(key)
    return values if values and min(values) >= 0 and max(values) <= NUMBER_LIMIT else None


def _largest(pairs: Pairs, key: str) -> int | None:
    scalar = _count(pairs.numbers, key)
    if scalar is not None:
        return scalar
    by_layer = _counts(pairs, key)
    return max(by_layer) if by_layer else None


def _is_diffusion(architecture: str | None, pairs: Pairs) -> bool:
    return CANVAS in pairs.numbers or (architecture or "").lower().startswith("diffusion")


def _window(pairs: Pairs, key: str, n_layers: int | None, full_first: bool) -> dict[str, Any]:
    """Period and mask (02 §2.9.5, §5.1): each `period`-th layer sees everything; a given mask outranks it."""
    given = pairs.arrays.get(key)
    if given:
        return {"swa_period": None, "swa_mask": tuple(value != 0 for value in given)}
    period = _count(pairs.numbers, key) or None
    if period is None or n_layers is None or n_layers > LAYER_LIMIT:
        return {"swa_period": period, "swa_mask": None}
    full = 0 if full_first else period - 1
    return {"swa_period": period, "swa_mask": tuple(i % period != full for i in range(n_layers))}


def _recurrent_mask(pairs: Pairs, key: str, n_layers: int | None) -> tuple[bool, ...] | None:
    """One flag per layer, or one for all of them."""
    given = pairs.arrays.get(key)
    if given:
        return tuple(value != 0 for value in given)
    for_all = pairs.flags.get(key, _count(pairs.numbers, key))
    if for_all is None or n_layers is None or n_layers > LAYER_LIMIT:
        return None
    return (bool(for_all),) * n_layers
