"""Speculation of an instance and its yield as JSON: asked, resolved, running, and what it brought (13 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from framework.api.shapes.basic import optional_reason_json, reason_json
from framework.api.shapes.plan import asked_mode, asked_speculation
from framework.values.instance import InstanceView
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.rounding import rounded
from framework.values.spec_yield import SpecYield, SpeedAt, best_known

SPEED_DIGITS = 3
SHARE_DIGITS = 4


def speculation_json(view: InstanceView, speeds: Iterable[SpeedAt] = ()) -> dict[str, Any]:
    """Asked, resolved and running speculation; what was not measured is null (05 §1).

    `speedup` is of the busy slots with most answers; `speculation_yield` of the model has them all.
    """
    plan, running, totals = view.plan, view.running, view.speculation
    speed = None if running is None else best_known(speeds, running.speculation)
    notes: tuple[Reason, ...] = () if plan is None else plan.spec.notes
    return {
        "asked": asked_mode(view.request) if plan is None else asked_speculation(plan),
        "resolved": None if plan is None else plan.spec.resolved,
        "running": None if running is None else running.speculation,
        "chained": plan is not None and plan.spec.is_chained,
        "depth": None if plan is None else plan.spec.depth,
        "depth_source": None if plan is None else plan.spec.depth_source,
        "drafter": None if plan is None else plan.spec.drafter,
        "reason": optional_reason_json(_fallback(view, plan)),
        "notes": [reason_json(note) for note in notes],
        "requests": None if running is None else totals.requests,
        "drafted": None if running is None else totals.drafted,
        "accepted": None if running is None else totals.accepted,
        "acceptance": rounded(totals.acceptance, SHARE_DIGITS),
        "drafted_by_position": list(totals.drafted_by_position),
        "accepted_by_position": list(totals.accepted_by_position),
        "speedup": None if speed is None else rounded(speed.speedup, SPEED_DIGITS),
        "baseline_tokens_per_s": None if speed is None else rounded(speed.plain_tokens_per_s, SPEED_DIGITS),
    }


def yield_json(measured: SpecYield) -> dict[str, Any]:
    """What the yield watch of a model knows, for each kind of drafting and number of busy slots."""
    return {
        "needed_requests": measured.needed_requests,
        "verdict": optional_reason_json(measured.verdict),
        "speeds": [_speed_json(speed) for speed in measured.speeds],
    }


def _speed_json(speed: SpeedAt) -> dict[str, Any]:
    return {
        "running": speed.running,
        "busy_slots": speed.busy_slots,
        "drafting_requests": speed.drafting_requests,
        "drafting_tokens_per_s": rounded(speed.drafting_tokens_per_s, SPEED_DIGITS),
        "baseline_requests": speed.plain_requests,
        "baseline_tokens_per_s": rounded(speed.plain_tokens_per_s, SPEED_DIGITS),
        "speedup": rounded(speed.speedup, SPEED_DIGITS),
        "acceptance": rounded(speed.acceptance, SHARE_DIGITS),
        "losing_s": rounded(speed.losing_s, SPEED_DIGITS),
    }


def _fallback(view: InstanceView, plan: LaunchPlan | None) -> Reason | None:
    """Why what runs is not what was wanted: what the process showed, else what was decided."""
    if view.running is not None and view.running.speculation_reason is not None:
        return view.running.speculation_reason
    return None if plan is None else plan.spec.reason
