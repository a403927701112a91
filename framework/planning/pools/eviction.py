"""Which residents of a pool make room for a start, and which are kept (04 §16.1-16.3). Pure; for decision.

Nobody leaves in vain: a set of residents is named only if the start fits once they are gone, and nobody is in
it without whom it fits as well. What is starting never leaves (it could not even hear that it should).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.values.pool import Applicant, Resident

# A client that asks one question after the other pauses so long between two; its model is not idle yet. Where
# loading it again takes long, a longer pause is waited for: a tenth of that, up to a limit.
LINGER_S = 0.1
LONGEST_LINGER_S = 0.3
LINGER_SHARE = 0.1


def why_kept(resident: Resident, asker: Applicant) -> str | None:
    """Why a resident never makes room for this asker, in a few words; None if it does once it is idle."""
    if resident.holding == "stuck":
        return "it was killed and does not end"
    if resident.pool != asker.pool:
        return f"it belongs to the pool {resident.pool}"
    if resident.model == asker.model:
        return "it is a replica of the same model"
    if resident.pinned:
        return "it is pinned"
    if resident.priority > asker.priority:
        return f"its priority is {resident.priority}, above {asker.priority}"
    if resident.load == "at-start" and resident.priority >= asker.priority:
        return "it is to be loaded from the start, and its priority is not lower"
    return None


def linger_s(resident: Resident) -> float:
    """How long nobody must have asked for it before it counts as idle."""
    return min(max(LINGER_S, resident.start_s * LINGER_SHARE), LONGEST_LINGER_S)


def is_idle(resident: Resident) -> bool:
    """Whether it serves nobody and most likely will not in the next moment."""
    return resident.leases == 0 and resident.idle_s >= linger_s(resident)


def turn_left_s(resident: Resident) -> float:
    """Until it may be interrupted: it is to be ready for as long as its start took, so that at least half of
    the time goes into answers however many models are asked for. Not for one that is still starting."""
    return max(0.0, resident.start_s - resident.ready_s)


def has_had_its_turn(resident: Resident) -> bool:
    """Whether it may be interrupted, or nobody uses it."""
    return is_idle(resident) or (resident.leases > 0 and not turn_left_s(resident))


def may_leave_now(resident: Resident, asker: Applicant, *, may_interrupt_turns: bool = False) -> bool:
    """Whether it can be told to end for this asker; a busy one, where allowed, ends when it has answered."""
    is_free = has_had_its_turn(resident) if may_interrupt_turns else is_idle(resident)
    return resident.holding == "resident" and is_free and why_kept(resident, asker) is None


def choose_victims(
    asker: Applicant,
    residents: Sequence[Resident],
    fits: Callable[[frozenset[str]], bool],
    *,
    may_interrupt_turns: bool = False,
) -> tuple[Resident, ...] | None:
    """Residents that make room, in the order in which they are told; None if all together are not enough.

    `fits` says whether the start fits once these instances are gone too; it must not get worse with more of
    them. With `may_interrupt_turns` those that serve are taken as well, the others first: they end when they
    have answered.
    """
    candidates = [r for r in residents if may_leave_now(r, asker, may_interrupt_turns=may_interrupt_turns)]
    return fewest(sorted(candidates, key=_order), fits)


def fewest(
    candidates: Sequence[Resident], fits: Callable[[frozenset[str]], bool]
) -> tuple[Resident, ...] | None:
    """As many from the front as it takes, without those that turn out not to be needed; None if all are not
    enough. Asks `fits` about log(n) times, and once for each that is taken."""
    if not candidates or not fits(_names(candidates)):
        return None
    low, high = 0, len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(_names(candidates[:middle])) else (middle, high)
    taken = list(candidates[:high])
    for resident in candidates[: high - 1]:
        rest = [r for r in taken if r is not resident]
        if fits(_names(rest)):
            taken = rest
    return tuple(taken)


def next_to_leave(residents: Sequence[Resident]) -> tuple[str, ...]:
    """Instances in the order in which they would make room, for pages; those that never would are left out.

    Those that serve come last, whatever their priority: they are asked only when nobody else is enough.
    """
    ready = [r for r in residents if r.holding == "resident" and not r.pinned]
    # One that is to be loaded from the start leaves only for a higher priority.
    ready.sort(key=lambda r: (r.leases > 0, r.priority, r.load == "at-start", *_order(r)))
    return tuple(r.instance for r in ready)


def _order(resident: Resident) -> tuple[bool, int, float, int, str]:
    """04 §16.3: lowest priority, then longest unused, then most bytes; names settle what is left."""
    busy = not is_idle(resident)
    return busy, resident.priority, -resident.idle_s, -resident.total_bytes, resident.instance


def _names(residents: Sequence[Resident]) -> frozenset[str]:
    return frozenset(resident.instance for resident in residents)
