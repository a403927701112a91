"""The kinds of events (07 §14.1), for filters: a misspelt kind is refused instead of matching nothing."""

from __future__ import annotations

from framework.telemetry.events import OUTCOMES

EVENT_KINDS = (
    "applied",
    "state",
    "download",
    "planned",
    "refused",
    "attempt",
    "degraded",
    "health",
    "ready",
    "start_failed",
    "exited",
    "respawn",
    "crash_loop",
    "demoted",
    "drift",
    "drain",
    "replaced",
    "replanned",
    "rolled_back",
    "replacement_failed",
    "manifest_loaded",
    "manifest_rejected",
    "command",
    "waiting",
    "evicted",
    "memory",
    "storage",
    "manager",
    "certificate",
    "adopted",
    "kept",
    "slots_saved",
    "slots_restored",
    "slots_discarded",
    "stopped",
    "unkillable",
    "orphan",
    "sweep_error",
)
EVENT_FILTERS = (*EVENT_KINDS, OUTCOMES)
"""What a reader may ask for as a kind."""
