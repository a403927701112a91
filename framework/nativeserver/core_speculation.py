"""Protocols of what the compiled core tells of drafting and of its loop guard (native/src/core/speculation).

Part of nativeserver.core; attribute names equal those of report.h and speculation_params.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class VerifyCounts(Protocol):
    """Drafted tokens by what became of them (11 §10)."""

    exact: int
    prob_accept: int
    reject: int
    no_prob: int
    bonus: int


class RollbackCounts(Protocol):
    """Verifications by how the memory was cut back (11 §13.7)."""

    none: int
    trim: int
    snapshot: int
    redecode: int
    refill: int


class SpeculationReport(Protocol):
    """Drafting for one request (11 §21.1)."""

    types: Sequence[str]
    active_type: str
    fallback_reason: str
    idle_reason: str
    adaptive: bool
    controller: str
    depth: int
    depth_base: int
    depth_state: str
    fringe: float
    score: float
    gain: float
    drafts: int
    drafted: int
    accepted: int
    drafted_by_position: Sequence[int]
    accepted_by_position: Sequence[int]
    verify_mode: str
    verify_counts: VerifyCounts
    rollbacks: RollbackCounts
    suppressed: bool


class LoopGuardReport(Protocol):
    """The guard's part in one request; counts of tokens."""

    mode: str
    triggered: bool
    action: str
    reason: str
    interventions: int
    reasoning_tokens: int
    visible_tokens: int


class SpeculationTotals(Protocol):
    """Counts since the engine's start."""

    drafts: int
    drafted: int
    accepted: int
    drafted_by_position: Sequence[int]
    accepted_by_position: Sequence[int]
    verify_counts: VerifyCounts
    rollbacks: RollbackCounts
    phase_ms: Sequence[float]
    """draft, verify, accept, other"""
    controller_changes: Sequence[Sequence[int]]
    """Of `profit`, then of `fringe`: up, down, off, on."""
    baseline_probes: int
    suppressions: int
    loop_guard_actions: Sequence[Sequence[int]]
    """In visible text, then in reasoning: stop, force-close."""


class DroppedType(Protocol):
    """A type that was asked for and does not run."""

    type: str
    reason: str


class Speculation(Protocol):
    """Drafting of an engine after its load, also while it sleeps."""

    types: Sequence[str]
    """Those that run, in the order in which they are asked."""
    dropped: Sequence[DroppedType]
    fallback_reason: str
    """Empty when every type that was asked for runs."""


EMBEDDINGS = "embeddings"
"""Reason of every type on a server that makes embeddings: it generates nothing that could be drafted."""


@dataclass
class Withheld:
    """A type that was asked for and that the core was not told of."""

    type: str
    reason: str


@dataclass
class Undrafted:
    """Drafting of an engine that was told of no type, although some were asked for."""

    dropped: Sequence[DroppedType]
    types: Sequence[str] = ()
    fallback_reason: str = EMBEDDINGS


class DepthParams(Protocol):
    """How the depth of drafts is ruled (11 §18)."""

    adaptive: bool
    controller: str
    fringe_min: float
    fringe_max: float
    fringe_window: int
    min_reach: int
    off_dwell: int
    probe_interval: int
    probe_fraction: float
    explore_interval: int
    profit_min: float
    raise_: float
    lower: float
    ewma: float
    min_samples: int
    warmup: int
    baseline_interval: int


class SpeculationParams(Protocol):
    """Settings of the server that its requests start from (11 §18); parts that only the core reads are left
    out."""

    n_max: int
    n_min: int
    p_min: float
    draft_temperature: float
    """Negative: auto."""
    verify: str
    grammar_blocks: bool
    strict: bool
    depth: DepthParams
