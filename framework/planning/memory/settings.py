"""What a launch asks for, as far as memory depends on it (03 §1.1, §2.9). Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from framework.values.cache_types import CACHE_TYPES

# Defaults of llama-server.
BATCH = 2048
MICRO_BATCH = 512
CELL_PADDING = 256
# 03 §3.1: an unknown type is priced as the default.
F16_BYTES = 2.0
# Cache types that the engine stores as they come; the others it rotates first, with a matrix per head width.
UNROTATED = frozenset({"f32", "f16", "bf16"})
DRAFT_DEPTH = 3
"""Tokens that llama-server drafts unless told otherwise."""


@dataclass(frozen=True)
class CacheSettings:
    """Context, slots and caches of one launch."""

    n_ctx: int
    """Tokens of all slots together."""
    slots: int = 1
    key_type: str = "f16"
    value_type: str = "f16"
    unified: bool = True
    """One cache for all slots, instead of one part each."""
    swa_full: bool = False
    """Windowed layers keep the whole context."""
    batch: int = BATCH
    ubatch: int = MICRO_BATCH
    flash_attention: bool = True
    kv_on_gpu: bool = True
    drafted: int = 0
    """Tokens that speculation drafts for a slot at most: room for their logits is reserved."""
    embeddings: bool = False
    """The server answers with vectors of all tokens instead of text."""
    repack: bool = True
    """The CPU may rearrange weights into a second kind of buffer."""


@dataclass(frozen=True)
class Offload:
    """Which layers and experts go to the GPUs. `gpu_layers` None means all of them."""

    gpu_layers: int | None = None
    cpu_experts: int = 0
    """Experts of so many first layers stay in host memory."""
    split: tuple[float, ...] = ()
    """Share of each GPU; empty leaves it to the free memory of each."""


@dataclass(frozen=True)
class DraftPlan:
    """A drafter beside the model, or an embedded head (03 §6); `depth` tokens are drafted at once."""

    kind: Literal["head", "model"]
    depth: int = DRAFT_DEPTH
    key_type: str = "f16"
    value_type: str = "f16"
    on_cpu: bool = False
    copies: int = 0
    """Of running states that the main context keeps for a model's drafts, where its architecture lets it."""


@dataclass(frozen=True)
class HostSettings:
    """What a server keeps in host memory beside weights (03 §9, measured)."""

    cache_ram_bytes: int = 8192 << 20
    """Limit of the prompt cache of `--cache-ram`; 0 switches it off. The default is the engine's."""
    checkpoints: int = 32
    """Context checkpoints per slot; the default is the engine's. Only models that cannot rewind make any."""
    mapped: bool = True
    """Weights in host memory are pages of the file, which the system can drop, not memory of the process."""


@dataclass(frozen=True)
class GpuBudget:
    """One GPU: what it has and what of it is free."""

    name: str
    free_bytes: int
    total_bytes: int = 0
    """0 where unknown."""
    backend: Literal["cuda", "vulkan", "metal", "rpc", "other"] = "other"


@dataclass(frozen=True)
class Hardware:
    """Where a plan may put things: GPUs in the engine's order, then host memory."""

    gpus: tuple[GpuBudget, ...] = ()
    host_free_bytes: int = 0
    host_total_bytes: int = 0
    fill_fraction: float = 0.97
    """Part of a GPU that may be taken; why, says 03 §1.3."""
    reserves_bytes: Mapping[str, int] = field(default_factory=dict)
    """To stay free, by device."""
    ceilings_bytes: Mapping[str, int] = field(default_factory=dict)
    """The most that may be taken of a device, whatever is free."""
    unified: frozenset[str] = frozenset()
    """GPUs whose memory is host memory: together with it they take no more than the host has free."""
    mapped_limit_bytes: int | None = None
    """What is held in host memory and pages of files together may come to; None: pages do not count."""


def bytes_per_element(cache_type: str | None) -> float:
    """03 §3.1: trimmed and lower-cased; unset and unknown types count as f16."""
    return CACHE_TYPES.get((cache_type or "").strip().lower(), F16_BYTES)


def is_rotated(cache_type: str) -> bool:
    """Whether the engine rotates what it stores in this type."""
    return cache_type.strip().lower() not in UNROTATED


def padded(tokens: int) -> int:
    """Cells come in whole blocks."""
    return -(-tokens // CELL_PADDING) * CELL_PADDING
