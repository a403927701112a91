"""Whose turn it is among replicas that wait for memory of a pool (08 §2.10). Pure; for its dispatcher.

Waiting is bounded. Requests for what is resident go first, which saves loads, but only until the oldest of
another model has waited `turn_after_s`. From then on its model is ahead of all that came later, nobody starts
into the memory that it waits for, and residents give way as soon as they have answered. So nobody waits
longer than `turn_after_s`, plus one load and the longest answer for each model whose requests waited before.

What it waits for is a plan, and those that have to end for it (`Claim`). Elsewhere anybody may start: the
plan still fits once those have ended, so its wait gets no longer. Whoever waits for somebody who never leaves
claims nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from framework.values.pool import Applicant, Claim, Resident


def ordered(applicants: Iterable[Applicant]) -> list[Applicant]:
    """Those that are overdue first, the oldest of them ahead; then by priority, then where most requests
    wait, then where the oldest waits. Equal ones stay in the order in which they were given."""
    return sorted(applicants, key=_rank)


def ahead(asker: Applicant, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Those whose memory must not be taken now, however well the asker would fit: they are overdue or have a
    higher priority. Others that wait for more than is free do not hold up what fits."""
    return tuple(claim for claim in claims if _is_ahead(claim.applicant, asker))


def kept_bytes(claims: Sequence[Claim], staying: Iterable[Resident]) -> dict[str, int]:
    """By device, how much is spoken for of what is free, or given back now. `staying` are those who hold the
    rest; what blockers among them hold is counted once, for the claim that comes first."""
    left = {resident.instance: dict(resident.bytes) for resident in staying}
    kept: Counter[str] = Counter()
    for claim in claims:
        givers = [left[name] for name in sorted(claim.blockers & left.keys())]
        for device, need in claim.needs.items():
            missing = need
            for giver in givers:
                given = min(missing, giver.get(device, 0))
                giver[device] = giver.get(device, 0) - given
                missing -= given
            kept[device] += missing
    return {device: missing for device, missing in kept.items() if missing}


def _is_ahead(other: Applicant, asker: Applicant) -> bool:
    is_rival = other.pool == asker.pool and other.model != asker.model
    return is_rival and (other.is_overdue or other.priority > asker.priority)


def _rank(applicant: Applicant) -> tuple[int, float, int, float]:
    if applicant.is_overdue:
        return 0, -applicant.oldest_wait_s, 0, 0.0
    return 1, -applicant.priority, -applicant.waiting, -applicant.oldest_wait_s
