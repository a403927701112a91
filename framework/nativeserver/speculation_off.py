"""What is said of speculation and loop guard where neither is at work (12 §15.2, §16.3, 11 §21.1). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOT_BUILT, NOT_ASKED = "type-not-built", "none-requested"


def speculation_off(asked: Sequence[str]) -> dict[str, Any]:
    """The object of a slot or a request; `asked` are the types of the command line."""
    return {
        "types": [],
        "active_type": "none",
        "fallback_reason": fallback_reason(asked),
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
        "acceptance": 0.0,
        "drafted_by_position": [],
        "accepted_by_position": [],
        "verify_mode": "",
        "verify_counts": {"exact": 0, "prob_accept": 0, "reject": 0, "no_prob": 0, "bonus": 0},
        "reduced": {"path": "host", "reason": "", "view_reason": "", "k": 0},
        "tree_drafts": 0,
        "tree_reason": "",
        "rollbacks": {"none": 0, "trim": 0, "snapshot": 0, "redecode": 0, "refill": 0},
        "suppressed": False,
    }


def speculation_of_server(asked: Sequence[str]) -> dict[str, Any]:
    """The object of /props."""
    return {
        "requested_types": list(asked),
        "types": [],
        "dropped": [{"type": name, "reason": NOT_BUILT} for name in asked],
        "fallback_reason": fallback_reason(asked),
        "capabilities": {},
        "verify_mode": "",
        "reduced_path": "host",
        "tree": {"enabled": False, "reason": fallback_reason(asked)},
        "adaptive": False,
        "controller": "",
        "defaults": {},
    }


def fallback_reason(asked: Sequence[str]) -> str:
    """Why nothing is drafted."""
    return NOT_BUILT if asked else NOT_ASKED


def loop_guard_off(n_reasoning: int, n_visible: int) -> dict[str, Any]:
    """The guard's object with the counts of a request, in tokens."""
    return {
        "mode": "off",
        "triggered": False,
        "action": "",
        "reason": "",
        "interventions": 0,
        "reasoning_tokens": n_reasoning,
        "visible_tokens": n_visible,
    }
