"""What the memory model needs to know about a model: facts of its header (03 §1.1, §4). Pure values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from framework.models.gguf_fields import GgufHeader
from framework.models.swa_pattern import EXAONE_4_LAYERS

# The engine loads no model with more.
MOST_LAYERS = 512
# 03 §4.3: where neither lengths nor heads are known, what most models have.
USUAL_HEAD_WIDTH = 128
# 03 §1.3: latent attention without a rope width.
USUAL_ROPE_WIDTH = 64
# Every layer keeps a state and a cache side by side, though none of its KV head counts is 0.
PARALLEL_HYBRIDS = frozenset({"falcon-h1"})
# Everything they remember is a state.
RECURRENT_ONLY = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
# Encoders that answer with vectors; they have no output matrix.
WITHOUT_OUTPUT = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3"}
    | {"neo-bert", "modern-bert", "eurobert"}
)
# They read all tokens at once and keep nothing.
WITHOUT_MEMORY = (
    WITHOUT_OUTPUT | {"gemma-embedding", "wavtokenizer-dec"} | {"dream", "llada", "llada-moe", "rnd1"}
)
# They attend among the tokens of one micro-batch, whatever they keep.
ATTENDS_DIRECTLY = WITHOUT_MEMORY | {"llama-embed"}
# Their norms are in no file.
NORMS_WITHOUT_WEIGHTS = frozenset({"olmo"})
# The engine multiplies by the embedding matrix itself, which stays in host memory.
OUTPUT_IN_HOST_MEMORY = frozenset({"bitnet"})
# Each cell keeps a key of the indexer that picks cells for attention, beside the latent row.
INDEXED = frozenset({"deepseek32"})
# The engine ignores a window in its other sizes.
WINDOWED_IN_ONE_SIZE = "exaone4"
# The first of its family repeats keys for its value heads; later ones let the operation do it.
REPEATS_KEYS = frozenset({"qwen3next"})
# Prediction layers whose cache only exists in a draft context of their own.
DRAFT_LAYERS_APART = frozenset({"qwen3next", "qwen35", "qwen35moe"})


@dataclass(frozen=True)
class ModelShape:
    """Header fields by the names of 02 §1.1; lengths in elements, masks and lists one entry per layer."""

    architecture: str | None = None
    n_layers: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    n_kv_heads_by_layer: tuple[int, ...] | None = None
    feed_forward_lengths: tuple[int, ...] | None = None
    embedding_length: int | None = None
    vocab_size: int | None = None
    context_length: int | None = None
    key_length: int | None = None
    value_length: int | None = None
    key_length_swa: int | None = None
    value_length_swa: int | None = None
    sliding_window: int | None = None
    swa_mask: tuple[bool, ...] | None = None
    full_attention_interval: int | None = None
    recurrent_mask: tuple[bool, ...] | None = None
    kv_lora_rank: int | None = None
    key_length_mla: int | None = None
    value_length_mla: int | None = None
    rope_dimension_count: int | None = None
    ssm_inner_size: int | None = None
    ssm_state_size: int | None = None
    ssm_conv_kernel: int | None = None
    ssm_group_count: int | None = None
    shortconv_length: int | None = None
    kda_head_length: int | None = None
    wkv_head_length: int | None = None
    token_shifts: int | None = None
    shared_kv_layers: int | None = None
    nextn_layers: int | None = None
    deepstack_layers: int | None = None
    has_parallel_residual: bool | None = None
    n_experts_used: int | None = None
    indexer_key_length: int | None = None

    @property
    def estimable(self) -> bool:
        """Whether a cache can be sized at all (03 §4.1)."""
        if not self.n_layers:
            return False
        if self.kv_lora_rank is not None:
            return True
        if self.key_length is not None and self.value_length is not None:
            return True
        heads = (self.n_kv_heads, self.n_heads, self.n_kv_heads_by_layer)
        return self.embedding_length is not None and any(value is not None for value in heads)

    @property
    def layers(self) -> int:
        """Layer count, 0 where unknown."""
        return self.n_layers or 0

    @property
    def has_latent_attention(self) -> bool:
        """One latent row per token instead of keys and values (03 §5.2).

        A file converted before the engine knew latent attention has the rank but full heads.
        """
        if self.kv_lora_rank is None:
            return False
        has_lengths = self.key_length is not None and self.value_length is not None
        return bool(self.key_length_mla) or not ((self.n_kv_heads or 0) > 1 and has_lengths)

    @property
    def latent_width(self) -> int:
        """Elements of the stored row: rank and rotated part together."""
        rope = USUAL_ROPE_WIDTH if self.rope_dimension_count is None else self.rope_dimension_count
        return self.key_length or (self.kv_lora_rank or 0) + rope

    @cached_property
    def key_width(self) -> int:
        """Elements per head of a key."""
        return self.key_length or self._head_width

    @cached_property
    def value_width(self) -> int:
        """Elements per head of a value."""
        return self.value_length or self._head_width

    @property
    def _head_width(self) -> int:
        if not self.n_heads:
            return USUAL_HEAD_WIDTH
        return (self.embedding_length or 0) // self.n_heads

    def kv_heads(self, layer: int) -> int:
        """Heads that a layer stores; 0 is honoured in a list, and means unknown elsewhere (03 §4.2)."""
        by_layer = self.n_kv_heads_by_layer
        if by_layer is not None and layer < len(by_layer):
            return by_layer[layer]
        return self.n_kv_heads or self.n_heads or 1

    def is_windowed(self, layer: int) -> bool:
        """Whether a layer keeps the sliding window only."""
        mask = self.swa_mask
        return bool(self.sliding_window) and mask is not None and layer < len(mask) and mask[layer]

    def key_row(self, layer: int) -> int:
        """Elements of one token's keys in a layer."""
        width = self.key_length_swa if self.is_windowed(layer) else None
        return self.kv_heads(layer) * (width or self.key_width)

    def value_row(self, layer: int) -> int:
        """Elements of one token's values in a layer."""
        width = self.value_length_swa if self.is_windowed(layer) else None
        return self.kv_heads(layer) * (width or self.value_width)

    @cached_property
    def widest_value_row(self) -> int:
        """Without flash attention every layer pays the widest row of all of them (03 §4.4)."""
        return max((self.value_row(layer) for layer in range(self.n_layers or 1)), default=0)

    @cached_property
    def recurrent_layers(self) -> tuple[int, ...]:
        """Layers that keep a state of fixed size (03 §5.7)."""
        return tuple(layer for layer in range(self.layers) if self._is_recurrent(layer))

    @cached_property
    def cache_layers(self) -> tuple[int, ...]:
        """Layers that own a cache; the last ones may use that of a layer before (03 §4.5)."""
        if self.architecture in WITHOUT_MEMORY | RECURRENT_ONLY:
            return ()
        last = self.layers - (self.shared_kv_layers or 0)
        if self.architecture in DRAFT_LAYERS_APART:
            last -= self.nextn_layers or 0
        return tuple(layer for layer in range(max(1, last)) if self._owns_cache(layer))

    def owns_cache(self, layer: int) -> bool:
        """Whether a layer has a cache of its own."""
        return layer in self._cache_layer_set

    def cache_owner(self, layer: int) -> int:
        """The layer whose cache a layer uses: its own, or that of the last one of its kind before."""
        if self.owns_cache(layer):
            return layer
        alike = (n for n in reversed(self.cache_layers) if self.is_windowed(n) == self.is_windowed(layer))
        return next(alike, layer)

    @cached_property
    def _cache_layer_set(self) -> frozenset[int]:
        return frozenset(self.cache_layers)

    def _owns_cache(self, layer: int) -> bool:
        if not self.kv_heads(layer):  # still pays the widest row of values without flash attention
            return not self._has_state
        return self.architecture in PARALLEL_HYBRIDS or not self._is_recurrent(layer)

    @property
    def _has_state(self) -> bool:
        sizes = (self.ssm_inner_size, self.shortconv_length, self.kda_head_length, self.wkv_head_length)
        return any(sizes)

    def _is_recurrent(self, layer: int) -> bool:
        if not self._has_state:
            return False
        if self.architecture in RECURRENT_ONLY | PARALLEL_HYBRIDS:
            return True
        mask, heads = self.recurrent_mask, self.n_kv_heads_by_layer
        if mask is not None and layer < len(mask):
            return mask[layer]
        if heads is not None and 0 in heads:
            return layer < len(heads) and heads[layer] == 0 and not self._feed_forward_alone(layer)
        if not self.full_attention_interval or self._is_draft_layer(layer):
            return False
        return (layer + 1) % self.full_attention_interval != 0

    def _feed_forward_alone(self, layer: int) -> bool:
        """Nemotron-H has layers of one part each: attention, state or feed-forward."""
        lengths = self.feed_forward_lengths
        alone = (self.architecture or "").startswith("nemotron_h")
        return alone and lengths is not None and layer < len(lengths) and lengths[layer] > 0

    def _is_draft_layer(self, layer: int) -> bool:
        return self.architecture in DRAFT_LAYERS_APART and layer >= self.layers - (self.nextn_layers or 0)


def shape_of(header: GgufHeader) -> ModelShape:
    """The part of `header` that counts here. Its window has to be resolved already (02 §5).

    A layer count that no engine loads is dropped, so that nothing walks through it.
    """
    facts = {field.name: getattr(header, field.name) for field in fields(ModelShape)}
    if header.architecture == WINDOWED_IN_ONE_SIZE and header.n_layers != EXAONE_4_LAYERS:
        facts["sliding_window"] = facts["swa_mask"] = None
    if (header.n_layers or 0) > MOST_LAYERS:
        facts["n_layers"] = None
    return ModelShape(**facts)
