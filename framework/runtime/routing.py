"""Which replica gets a request (08 §2.11, 05 §11.7). Called by runtime.supervisor for each lease."""

from __future__ import annotations

from collections.abc import Sequence

from framework.runtime.instance import Instance


def best_replica(ready: Sequence[Instance], last: int | None, *, spares_drafting: bool) -> Instance:
    """The one with the fewest open leases, then the one this key used `last` (its cache is warm), then the
    first. REQUIRES: `ready` is not empty.

    One that leaves health checks without an answer comes last. `spares_drafting`: drafting does not pay, so
    one that drafts nothing goes first while it has a free slot; the others get quiet and can be restarted.
    """

    def rank(instance: Instance) -> tuple[bool, bool, int, bool, int]:
        is_spared = spares_drafting and (instance.is_drafting or _is_full(instance))
        is_silent = instance.silent is not None
        return is_silent, is_spared, len(instance.leases), instance.replica != last, instance.replica

    return min(ready, key=rank)


def _is_full(instance: Instance) -> bool:
    slots = instance.result.slots if instance.result is not None else 0
    return len(instance.leases) >= slots
