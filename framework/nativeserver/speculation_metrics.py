"""Metrics of drafting and of the loop guard (12 §18). Read by metrics_page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from framework.nativeserver.core_speculation import Speculation, SpeculationTotals
from framework.nativeserver.metric import Metric, Series, events
from framework.nativeserver.speculation_shape import rollbacks_json, verify_counts_json

MS_PER_S = 1000
PHASES = ("draft", "verify", "accept", "other")
CONTROLLERS = ("profit", "fringe")
DIRECTIONS = ("up", "down", "off", "on")
REGIONS = ("visible", "reasoning")
ACTIONS = ("stop", "force-close")


def _total(name: str) -> Callable[[Any], float]:
    return attrgetter(f"totals.speculation.{name}")


def _series(
    label: str, counts: Callable[[SpeculationTotals], Mapping[str, float]]
) -> Callable[[Any], Series]:
    return lambda snapshot: events(label, counts(snapshot.totals.speculation))


def _by_position(counts: Sequence[int]) -> dict[str, float]:
    return {str(position): count for position, count in enumerate(counts)}


def _phases(totals: SpeculationTotals) -> dict[str, float]:
    return {phase: ms / MS_PER_S for phase, ms in zip(PHASES, totals.phase_ms, strict=True)}


def _changes(snapshot: Any) -> Series:
    rows = zip(CONTROLLERS, snapshot.totals.speculation.controller_changes, strict=True)
    return {
        (("controller", controller), ("direction", direction)): count
        for controller, counts in rows
        for direction, count in zip(DIRECTIONS, counts, strict=True)
        if count
    }


def _interventions(snapshot: Any) -> Series:
    rows = zip(REGIONS, snapshot.totals.speculation.loop_guard_actions, strict=True)
    return {
        (("action", action), ("region", region)): count
        for region, counts in rows
        for action, count in zip(ACTIONS, counts, strict=True)
        if count
    }


def _by_slot(name: str) -> Callable[[Any], Series]:
    """Of slots that draft."""
    return lambda snapshot: {
        (("slot", str(view.id)),): getattr(view.speculation, name)
        for view in snapshot.slots
        if view.speculation.types
    }


METRICS: tuple[Metric, ...] = (
    Metric("spec_decode_num_draft_tokens_total", "counter", "Tokens drafted", _total("drafted")),
    Metric("spec_decode_num_accepted_tokens_total", "counter", "Drafted tokens accepted", _total("accepted")),
    Metric("spec_decode_num_drafts_total", "counter", "Drafts verified", _total("drafts")),
    Metric(
        "spec_decode_num_accepted_tokens_per_pos_total",
        "counter",
        "Drafted tokens accepted, by position in the draft",
        _series("position", lambda totals: _by_position(totals.accepted_by_position)),
    ),
    Metric(
        "spec_decode_num_draft_tokens_per_pos_total",
        "counter",
        "Drafts that reached a position",
        _series("position", lambda totals: _by_position(totals.drafted_by_position)),
    ),
    Metric(
        "spec_verify_outcomes_total",
        "counter",
        "Verified tokens, by outcome",
        _series("outcome", lambda totals: verify_counts_json(totals.verify_counts)),
    ),
    Metric(
        "spec_reduced_total",
        "counter",
        "Verifications, by why the best tokens of a row were enough or not",
        _series("reason", lambda totals: totals.reduced),
    ),
    Metric("spec_tree_drafts_total", "counter", "Drafts with side chains", _total("tree_drafts")),
    Metric(
        "spec_rollbacks_total",
        "counter",
        "Verifications, by how the memory was cut back",
        _series("kind", lambda totals: rollbacks_json(totals.rollbacks)),
    ),
    Metric("spec_phase_seconds_total", "counter", "Time of cycles, by phase", _series("phase", _phases)),
    Metric("spec_controller_changes_total", "counter", "Changes of the depth of drafts", _changes),
    Metric(
        "spec_baseline_probes_total",
        "counter",
        "Cycles without drafts, for comparison",
        _total("baseline_probes"),
    ),
    Metric("spec_depth", "gauge", "Tokens that may be drafted now", _by_slot("depth")),
    Metric("spec_gain", "gauge", "Gain that drafting is expected to bring", _by_slot("gain")),
    Metric(
        "spec_suppressions_total", "counter", "Times a tool marker paused drafting", _total("suppressions")
    ),
    Metric("loop_guard_interventions_total", "counter", "Loops that were ended", _interventions),
)


def fallback(speculation: Speculation) -> Metric:
    """Types of drafting that were asked for and do not run."""
    dropped: Series = {
        (("type", dropped.type), ("reason", dropped.reason)): 1 for dropped in speculation.dropped
    }
    return Metric("spec_fallback", "gauge", "Types of drafting that were dropped", lambda _: dropped)
