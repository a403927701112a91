"""Drafting and loop guard as JSON (11 §21.1, 12 §6.5, §16.3). Called by slots, props, flavours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from framework.nativeserver.core_speculation import (
    LoopGuardReport,
    ReducedReport,
    RollbackCounts,
    Speculation,
    SpeculationParams,
    SpeculationReport,
    VerifyCounts,
)

NOT_BUILT = "type-not-built"
VERIFY_OUTCOMES = ("exact", "prob_accept", "reject", "no_prob", "bonus")
ROLLBACKS = ("none", "trim", "snapshot", "redecode", "refill")
DEPTH_SETTINGS = (
    *("adaptive", "controller", "fringe_min", "fringe_max", "fringe_window", "min_reach", "off_dwell"),
    *("probe_interval", "probe_fraction", "explore_interval", "profit_min", "raise_", "lower", "ewma"),
    *("min_samples", "warmup", "baseline_interval"),
)
"""Attributes in the order of 11 §18."""
CAN_CUT = ("partial", "recurrent")


def speculation_json(report: SpeculationReport, fallback_reason: str = "") -> dict[str, Any]:
    """The object of a slot or a request; `fallback_reason` goes before the core's own."""
    return {
        "types": list(report.types),
        "active_type": report.active_type,
        "fallback_reason": fallback_reason or report.fallback_reason,
        "idle_reason": report.idle_reason,
        "adaptive": report.adaptive,
        "controller": report.controller,
        "depth": report.depth,
        "depth_base": report.depth_base,
        "depth_state": report.depth_state,
        "fringe": finite(report.fringe),
        "score": finite(report.score),
        "gain": finite(report.gain),
        "drafts": report.drafts,
        "drafted": report.drafted,
        "accepted": report.accepted,
        "acceptance": report.accepted / max(1, report.drafted),
        "drafted_by_position": list(report.drafted_by_position),
        "accepted_by_position": list(report.accepted_by_position),
        "verify_mode": report.verify_mode,
        "verify_counts": verify_counts_json(report.verify_counts),
        "reduced": reduced_json(report.reduced),
        "tree_drafts": report.tree_drafts,
        "tree_reason": report.tree_reason,
        "rollbacks": rollbacks_json(report.rollbacks),
        "suppressed": report.suppressed,
    }


def loop_guard_json(report: LoopGuardReport) -> dict[str, Any]:
    """The guard's object."""
    return {
        "mode": report.mode,
        "triggered": report.triggered,
        "action": report.action,
        "reason": report.reason,
        "interventions": report.interventions,
        "reasoning_tokens": report.reasoning_tokens,
        "visible_tokens": report.visible_tokens,
    }


def speculation_of_server(
    speculation: Speculation, asked: Sequence[str], settings: SpeculationParams, facts: Any
) -> dict[str, Any]:
    """The object of /props; `asked` are the types of the command line, `facts` those of the context."""
    runs = bool(speculation.types)
    return {
        "requested_types": list(asked),
        "types": list(speculation.types),
        "dropped": [{"type": dropped.type, "reason": dropped.reason} for dropped in speculation.dropped],
        "fallback_reason": speculation.fallback_reason,
        "capabilities": _capabilities(facts),
        "verify_mode": settings.verify if runs else "",
        "reduced_path": speculation.reduced_path,
        "reduced_reason": speculation.reduced_reason,
        "tree": {"enabled": speculation.has_trees, "reason": speculation.tree_reason},
        "adaptive": settings.depth.adaptive and runs,
        "controller": settings.depth.controller if runs else "",
        "defaults": defaults_json(settings),
    }


def defaults_json(settings: SpeculationParams) -> dict[str, Any]:
    """What a request starts from, by the names of 11 §18."""
    temperature = settings.draft_temperature
    return {
        **{name.rstrip("_"): getattr(settings.depth, name) for name in DEPTH_SETTINGS},
        "n_max": settings.n_max,
        "n_min": settings.n_min,
        "p_min": settings.p_min,
        "p_split": settings.p_split,
        "branch_budget": settings.branch_budget,
        "topk": settings.topk,
        "branch_seqs": settings.branch_seqs,
        "draft_temperature": "auto" if temperature < 0 else temperature,
        "verify": settings.verify,
        "reduced": settings.reduced,
        "reduced_drafters": settings.reduced_drafters,
        "grammar": "block" if settings.grammar_blocks else "allow",
        "rs_snapshots": "auto" if settings.rs_snapshots < 0 else settings.rs_snapshots,
        "strict": settings.strict,
    }


def verify_counts_json(counts: VerifyCounts) -> dict[str, int]:
    """Tokens by outcome."""
    return {outcome: getattr(counts, outcome) for outcome in VERIFY_OUTCOMES}


def rollbacks_json(counts: RollbackCounts) -> dict[str, int]:
    """Verifications by kind of rollback."""
    return {kind: getattr(counts, kind) for kind in ROLLBACKS}


def reduced_json(report: ReducedReport) -> dict[str, Any]:
    """Whether the latest draft was judged by the `k` best tokens of its rows, and why or why not."""
    return {
        "path": report.path,
        "reason": report.reason,
        "view_reason": report.view_reason,
        "k": report.k,
    }


def finite(number: float) -> float:
    """JSON has no other numbers; a measurement that is none of them is 0."""
    return number if math.isfinite(number) else 0.0


def _capabilities(facts: Any) -> dict[str, bool | str]:
    """Those of 11 §2 that a type of this build asks for: true, or what is missing or done instead."""
    found: dict[str, bool | str] = {
        "trim": facts.removal in CAN_CUT or "no-rollback",
        "backend-sampler": facts.backend_sampler or "backend-sampler-refused",
        "backend-multi-output": facts.backend_multi_output or "backend-one-output",
    }
    if facts.is_recurrent or facts.is_hybrid:
        found["rs-snapshots"] = True if facts.removal == "recurrent" else "redecode"
    return found
