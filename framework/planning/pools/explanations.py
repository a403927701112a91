"""Who holds the memory that a model wants, and what happens next, in words. Pure; for decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from framework.planning.pools.eviction import why_kept
from framework.values.device import HOST_NAME
from framework.values.pool import Applicant, Resident
from framework.values.reason import Reason
from framework.values.units_text import counted, duration, size

# So many are named in a sentence; the evidence has all of them.
NAMED = 4


def evicted_for(victim: Resident, asker: Applicant, needs: Mapping[str, int]) -> Reason:
    """Why a resident leaves."""
    state = "once it has answered" if victim.leases else f"after {duration(victim.idle_s)} without a request"
    return Reason(
        "evicted_for",
        f"{victim.model} makes room for {asker.model}, {state}: {asker.model} needs {_sizes(needs)}, and"
        f" {victim.model} holds {_sizes(_held(victim, needs))}.",
        "pin = true or a higher priority keeps a model; it is loaded again by its next request.",
        evidence={
            "for": asker.model,
            "needs_bytes": dict(needs),
            "holds_bytes": dict(victim.bytes),
            "idle_s": victim.idle_s,
            "leases": victim.leases,
        },
    )


def waiting_for_memory(
    asker: Applicant, needs: Mapping[str, int], blockers: Sequence[Resident], ahead: Sequence[Applicant]
) -> Reason:
    """What a start waits for: residents, or others whose turn it is."""
    if ahead:
        others = [f"{a.model} ({_why_ahead(a)})" for a in ahead]
        message = f"{asker.model} waits for its turn: first comes {_listed(others)}."
    else:
        holders = [f"{r.model} holds {_sizes(_held(r, needs))} ({_state(r)})" for r in blockers]
        message = f"{asker.model} needs {_sizes(needs)}: {_listed(holders)}. {_what_next(asker, blockers)}"
    return Reason(
        "waiting_for_memory",
        message,
        "More memory, a smaller model or a shorter context avoids the wait; a higher priority shortens it.",
        evidence={
            "needs_bytes": dict(needs),
            "held_by": {r.instance: dict(r.bytes) for r in blockers},
            "behind": [a.model for a in ahead],
        },
    )


def capacity_pinned(asker: Applicant, needs: Mapping[str, int], pinned: Sequence[Resident]) -> Reason:
    """Pinned models hold what would be enough."""
    holders = _listed([f"{r.model} holds {_sizes(_held(r, needs))}" for r in pinned])
    names = _listed(sorted({r.model for r in pinned}))
    return Reason(
        "capacity_pinned",
        f"{asker.model} needs {_sizes(needs)}, and what is pinned never makes room: {holders}.",
        f"Remove pin = true from {names}, unload it, or give {asker.model} another pool.",
        "error",
        _evidence(needs, pinned),
    )


def held_by_others(
    asker: Applicant, needs: Mapping[str, int], kept: Sequence[Resident], *, may_evict: bool
) -> Reason:
    """It would fit into the pool, but nobody who holds the memory makes room for it."""
    holders = [
        f"{r.model} holds {_sizes(_held(r, needs))}"
        + (f" ({why_kept(r, asker)})" if may_evict or r.holding == "stuck" else "")
        for r in kept
    ]
    if all(r.holding == "stuck" for r in kept):
        remedy = "The system must let go of the process first; a restart of the machine always does that."
    elif may_evict:
        remedy = f"Unload one of them, give {asker.model} a higher priority, or another pool."
    else:
        remedy = f'Unload one of them; evict = "idle" in pools.{asker.pool} does that by itself.'
    return Reason(
        "does_not_fit",
        f"{asker.model} needs {_sizes(needs)}, and nobody makes room for it: {_listed(holders)}.",
        remedy,
        "error",
        _evidence(needs, kept),
    )


def _evidence(needs: Mapping[str, int], holders: Sequence[Resident]) -> dict[str, object]:
    return {"needs_bytes": dict(needs), "held_by": {r.instance: dict(r.bytes) for r in holders}}


def _state(resident: Resident) -> str:
    if resident.holding == "promised":
        return "starting"
    serving = f"answers {counted(resident.leases, 'request')}"
    if resident.holding == "leaving":
        return f"ending, {serving}" if resident.leases else "ending"
    return serving if resident.leases else f"idle for {duration(resident.idle_s)}"


def _why_ahead(applicant: Applicant) -> str:
    if applicant.is_overdue:
        return f"waiting for {duration(applicant.oldest_wait_s)}"
    return f"priority {applicant.priority}"


def _what_next(asker: Applicant, blockers: Sequence[Resident]) -> str:
    if all(r.holding == "leaving" for r in blockers):
        return "It starts as soon as that memory is back."
    if any(r.holding == "promised" for r in blockers):
        return "What is starting is not interrupted; after that they make room when idle."
    left_s = asker.turn_after_s - asker.oldest_wait_s
    if asker.waiting and left_s > 0:
        return f"They make room when idle; in {duration(left_s)} they take no more requests and leave."
    return "They make room when idle."


def _held(resident: Resident, needs: Mapping[str, int]) -> Mapping[str, int]:
    """What a resident holds as the need is counted: in host memory alone, with pages of its files."""
    if set(needs) <= {HOST_NAME}:
        return Counter(resident.bytes) + Counter(resident.mapped)
    return resident.bytes


def _sizes(held: Mapping[str, int]) -> str:
    return _listed([f"{size(n)} of {name}" for name, n in held.items() if n], most=len(held)) or "memory"


def _listed(parts: Sequence[str], most: int = NAMED) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c, d and 3 more`."""
    shown = [*parts[:most], f"{len(parts) - most} more"] if len(parts) > most else list(parts)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
