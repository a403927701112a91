"""How long until a model can serve, as far as anything is known of it. Called by runtime.supervisor."""

from __future__ import annotations

from collections.abc import Iterable

from framework.runtime.admission import Admission
from framework.runtime.replica import Replica
from framework.values.instance import State


def eta_s(replicas: Iterable[Replica], admission: Admission) -> float | None:
    """Rest of a download, or of a load from the time the last one took; None when nothing is known."""
    for replica in replicas:
        current = replica.current
        if current is not None and current.state is State.FETCHING:
            return current.fetched.eta_s if current.fetched is not None else None
        if current is not None and current.state is State.STARTING and replica.load_s:
            return max(0.0, replica.load_s - current.seconds_in_state)
        if current is not None and current.state is State.PLANNING:
            return admission.eta_s(current.name)
    return None
