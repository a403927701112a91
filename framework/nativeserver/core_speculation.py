"""Protocols of what the compiled core tells of drafting and of its loop guard (native/src/core/speculation).

Part of nativeserver.core; attribute names equal those of report.h and speculation_params.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class ReducedReport(Protocol):
    """How the latest draft was judged (11 §11)."""

    path: str
    """off host"""
    reason: str
    view_reason: str
    k: int


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
    reduced: ReducedReport
    tree_drafts: int
    tree_reason: str
    """Why the last draft had no side chains; empty: it had, or none were asked for."""
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
    reduced: Mapping[str, int]
    """Verifications by the reason for or against reduced ones."""
    tree_drafts: int
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
    reduced_path: str
    """off host"""
    reduced_reason: str
    """Why it is not the device, if that was asked for."""
    has_trees: bool
    tree_reason: str
    """Why no draft has side chains; empty: they may."""


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

    types: Sequence[str]
    dropped: Sequence[DroppedType]
    fallback_reason: str
    reduced_path: str
    reduced_reason: str
    has_trees: bool
    tree_reason: str


def undrafted(core: Speculation, asked: Sequence[str]) -> Speculation:
    """What the core tells, with the types that it was not told of."""
    return Undrafted(
        types=(),
        dropped=[Withheld(kind, EMBEDDINGS) for kind in asked],
        fallback_reason=EMBEDDINGS,
        reduced_path=core.reduced_path,
        reduced_reason=core.reduced_reason,
        has_trees=core.has_trees,
        tree_reason=core.tree_reason,
    )


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
    branch_budget: int
    topk: int
    branch_seqs: int
    p_split: float
    draft_temperature: float
    """Negative: auto."""
    verify: str
    reduced: str
    reduced_drafters: str
    grammar_blocks: bool
    rs_snapshots: int
    """Negative: auto."""
    strict: bool
    depth: DepthParams
