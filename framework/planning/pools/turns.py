"""Whose turn it is among replicas that wait for memory of a pool (08 §2.10). Pure; for its dispatcher.

Waiting is bounded. Requests for what is resident go first, which saves loads, but only until the oldest of
another model has waited `turn_after_s`. From then on its model is ahead of all that came later, nobody starts
into the memory that it waits for, and residents give way as soon as they have answered. So nobody waits
longer than `turn_after_s`, plus one load and the longest answer for each model whose requests waited before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from framework.values.pool import Applicant


def ordered(applicants: Iterable[Applicant]) -> list[Applicant]:
    """Those that are overdue first, the oldest of them ahead; then by priority, then where most requests
    wait, then where the oldest waits. Equal ones stay in the order in which they were given."""
    return sorted(applicants, key=_rank)


def ahead(asker: Applicant, before: Sequence[Applicant]) -> tuple[Applicant, ...]:
    """Those among `before` whose memory must not be taken now, however well the asker would fit: they are
    overdue or have a higher priority. Others that wait for more than is free do not hold up what fits."""
    rivals = (a for a in before if a.pool == asker.pool and a.model != asker.model)
    return tuple(a for a in rivals if a.is_overdue or a.priority > asker.priority)


def _rank(applicant: Applicant) -> tuple[int, float, int, float]:
    if applicant.is_overdue:
        return 0, -applicant.oldest_wait_s, 0, 0.0
    return 1, -applicant.priority, -applicant.waiting, -applicant.oldest_wait_s
