"""What the core tells of drafting and of the loop guard, with its defaults; for the written cores here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def speculation(*types: str, fallback_reason: str = "", **dropped: str) -> SimpleNamespace:
    """Engine.speculation(); `dropped` are reasons by type, with `_` for `-`."""
    gone = [SimpleNamespace(type=name.replace("_", "-"), reason=reason) for name, reason in dropped.items()]
    last = gone[-1].reason if gone else ("" if types else "none-requested")
    return SimpleNamespace(
        types=list(types),
        dropped=gone,
        fallback_reason=fallback_reason or last,
        reduced_path="host",
        reduced_reason="",
        has_trees=False,
        tree_reason="none-requested",
    )


def counts(names: str, **given: int) -> SimpleNamespace:
    return SimpleNamespace(**{**dict.fromkeys(names.split(), 0), **given})


def verify_counts(**given: int) -> SimpleNamespace:
    """VerifyCounts."""
    return counts("exact prob_accept reject no_prob bonus", **given)


def rollbacks(**given: int) -> SimpleNamespace:
    """RollbackCounts."""
    return counts("none trim snapshot redecode refill", **given)


def reduced(**given: Any) -> SimpleNamespace:
    """ReducedReport of a request without drafts."""
    return SimpleNamespace(**{"path": "host", "reason": "", "view_reason": "", "k": 1, **given})


def report(**fields: Any) -> SimpleNamespace:
    """SpeculationReport of a request without drafts."""
    base: dict[str, Any] = {
        "types": [],
        "active_type": "none",
        "fallback_reason": "none-requested",
        "idle_reason": "",
        "adaptive": False,
        "controller": "",
        "depth": 0,
        "depth_base": 0,
        "depth_state": "off",
        "fringe": 0.0,
        "score": 0.0,
        "gain": 0.0,
        "drafts": 0,
        "drafted": 0,
        "accepted": 0,
        "drafted_by_position": [],
        "accepted_by_position": [],
        "verify_mode": "",
        "verify_counts": verify_counts(),
        "reduced": reduced(),
        "tree_drafts": 0,
        "tree_reason": "",
        "rollbacks": rollbacks(),
        "suppressed": False,
    }
    return SimpleNamespace(**{**base, **fields})


def drafted_report(**fields: Any) -> SimpleNamespace:
    """SpeculationReport of a request whose drafts were mostly right (12 §15.8)."""
    base: dict[str, Any] = {
        "types": ["ngram-mod", "draft-simple"],
        "active_type": "draft-simple",
        "fallback_reason": "no-nextn-layers",
        "adaptive": True,
        "controller": "profit",
        "depth": 3,
        "depth_base": 3,
        "depth_state": "on",
        "fringe": 0.58,
        "score": 168.5,
        "gain": 0.685,
        "drafts": 32,
        "drafted": 96,
        "accepted": 61,
        "drafted_by_position": [32, 32, 32],
        "accepted_by_position": [26, 20, 15],
        "verify_mode": "rejection",
        "verify_counts": verify_counts(prob_accept=61, reject=17, bonus=15),
        "reduced": reduced(reason="rejection"),
        "tree_drafts": 5,
        "tree_reason": "tree-single-path",
        "rollbacks": rollbacks(none=15, trim=17),
    }
    return report(**{**base, **fields})


def guard_report(**fields: Any) -> SimpleNamespace:
    """LoopGuardReport."""
    base: dict[str, Any] = {
        "mode": "off",
        "triggered": False,
        "action": "",
        "reason": "",
        "interventions": 0,
        "reasoning_tokens": 0,
        "visible_tokens": 0,
    }
    return SimpleNamespace(**{**base, **fields})


def speculation_totals(**fields: Any) -> SimpleNamespace:
    """SpeculationTotals of a fresh engine."""
    base: dict[str, Any] = {
        "drafts": 0,
        "drafted": 0,
        "accepted": 0,
        "drafted_by_position": [],
        "accepted_by_position": [],
        "verify_counts": verify_counts(),
        "reduced": {},
        "tree_drafts": 0,
        "rollbacks": rollbacks(),
        "phase_ms": [0.0] * 4,
        "controller_changes": [[0] * 4, [0] * 4],
        "baseline_probes": 0,
        "suppressions": 0,
        "loop_guard_actions": [[0, 0], [0, 0]],
    }
    return SimpleNamespace(**{**base, **fields})


def speculation_request() -> SimpleNamespace:
    """SpeculationRequest that changes nothing."""
    return SimpleNamespace(type=None, n_max=None, n_min=None, p_min=None, adaptive=None, controller=None)


def loop_guard_params() -> SimpleNamespace:
    """LoopGuardParams."""
    return SimpleNamespace(
        mode="off",
        min_reasoning_tokens=512,
        window_tokens=384,
        max_period=96,
        min_repeated_coverage=192,
        check_interval=32,
        interventions_max=1,
    )


def speculation_params() -> SimpleNamespace:
    """SpeculationParams."""
    depth: dict[str, Any] = {
        "adaptive": True,
        "controller": "profit",
        "fringe_min": 0.30,
        "fringe_max": 0.75,
        "fringe_window": 4,
        "min_reach": 8,
        "off_dwell": 2,
        "probe_interval": 32,
        "probe_fraction": 0.25,
        "explore_interval": 64,
        "profit_min": 0.05,
        "raise_": 0.02,
        "lower": 0.01,
        "ewma": 0.20,
        "min_samples": 3,
        "warmup": 4,
        "baseline_interval": 256,
    }
    return SimpleNamespace(
        types=[],
        model=SimpleNamespace(
            path="",
            n_gpu_layers=-1,
            devices=[],
            cache_type_k="f16",
            cache_type_v="f16",
            n_threads=-1,
            n_threads_batch=-1,
        ),
        n_max=3,
        n_min=0,
        p_min=0.0,
        branch_budget=0,
        topk=1,
        branch_seqs=8,
        p_split=0.1,
        draft_temperature=-1.0,
        verify="rejection",
        reduced="auto",
        reduced_drafters="all",
        grammar_blocks=False,
        rs_snapshots=-1,
        strict=False,
        simple=SimpleNamespace(n=12, m=48, min_hits=1),
        map_k=SimpleNamespace(n=12, m=48, min_hits=1),
        map_k4v=SimpleNamespace(n=12, m=48, min_hits=1),
        mod=SimpleNamespace(match=24, min=48, max=64),
        lookup_static="",
        lookup_dynamic="",
        depth=SimpleNamespace(**depth),
    )


def engine_params() -> SimpleNamespace:
    """EngineParams as far as these tests read them."""
    return SimpleNamespace(
        model_path="",
        n_ctx=0,
        n_parallel=-1,
        n_ubatch=512,
        kv_unified=False,
        swa_full=False,
        cache_type_k="f16",
        cache_type_v="f16",
        n_gpu_layers=-1,
        devices=[],
        offload_kqv=True,
        metadata_overrides=[],
        speculation=speculation_params(),
    )
