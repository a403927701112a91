"""Whether the slots of an instance are saved now (07 §11.5), and what they will take at most (§11.6). Pure.

Called by runtime.slot_saving before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.planning.slot_saving.fingerprint import SlotFingerprint, difference
from framework.values.plan import FitPlan
from framework.values.reason import Reason
from framework.values.units_text import size

CACHE_LABELS = frozenset({"kv", "recurrent_state"})
# Other programs write to the same disk meanwhile.
SPARE_DISK_BYTES = 2**30


@dataclass(frozen=True)
class SaveFacts:
    """What is known when slots are to be saved."""

    loaded: SlotFingerprint
    """As it was when the instance got ready."""
    now: SlotFingerprint
    """With its files as they are now."""
    estimate_bytes: int
    """0 where nothing can be said."""
    limit_bytes: int
    """`slot_state.max`."""
    free_bytes: int | None
    """Of the disk; None where that is not known."""


def estimate_bytes(fit: FitPlan, tokens: int | None) -> int:
    """What slots with so many tokens will take on disk: their share of the planned cache. None: all of it.

    0 where no cache was planned.
    """
    whole = sum(line.bytes for line in fit.lines if line.label in CACHE_LABELS)
    if tokens is None or not fit.context:
        return whole
    return whole * min(tokens, fit.context) // fit.context


def why_not_saved(facts: SaveFacts) -> Reason | None:
    """Why nothing is saved; None where it is. Order of 07 §11.5: what is not known of the model file, what
    has changed since it was loaded, the limit, the disk."""
    if facts.loaded.gguf_stat is None:
        return _not_saved("the model file could not be looked at", "Look at its rights.", "file_unknown")
    if changed := difference(facts.loaded.as_json(), facts.now):
        why = f"{changed} has changed since it was loaded"
        return _not_saved(why, "Nothing: the next process reads what is there now.", "changed")
    if facts.estimate_bytes > facts.limit_bytes:
        why = f"they would take {size(facts.estimate_bytes)}"
        return _too_large(why, facts.limit_bytes)
    needed = (facts.estimate_bytes or facts.limit_bytes) + SPARE_DISK_BYTES
    if facts.free_bytes is not None and facts.free_bytes < needed:
        why = f"the disk of the state directory has {size(facts.free_bytes)} free"
        remedy = f"Free {size(needed - facts.free_bytes)} of it, or set slot_state.max to less."
        return _not_saved(why, remedy, "disk_full")
    return None


def over_limit(written_bytes: int, limit_bytes: int) -> Reason:
    """Why what was written is deleted again (07 §11.8)."""
    return _too_large(f"they took {size(written_bytes)}", limit_bytes)


def given_up(why: str) -> Reason:
    """Why no slot was saved although some held something."""
    return _not_saved(why, "Nothing: its conversations are read again after the next start.", "given_up")


def _too_large(why: str, limit_bytes: int) -> Reason:
    remedy = "Set slot_state.max to more, or use a smaller kv_cache."
    return _not_saved(f"{why}, and slot_state.max is {size(limit_bytes)}", remedy, "too_large")


def _not_saved(why: str, remedy: str, cause: str) -> Reason:
    return Reason(
        "slot_state_not_saved",
        f"The prompt caches of its slots are not saved: {why}.",
        remedy,
        "warning",
        {"cause": cause},
    )
