"""One question to `planning.pools.decision`, with everything that the answer depends on. Values only.

Made by runtime.pool_queue on the event loop, answered in a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from framework.hardware.unified import after_return
from framework.planning.pools.decision import Decision, decide
from framework.runtime.planner import Prepared
from framework.values.device import Device
from framework.values.plan import LaunchPlan
from framework.values.pool import Applicant, Claim, Freedom, Resident
from framework.values.reason import Reason, Refused
from framework.values.request import PoolLimits

DOES_NOT_FIT = "does_not_fit"


class Places(Protocol):
    """Makes plans for devices as they are; thread-safe."""

    def place(
        self,
        prepared: Prepared,
        devices: Sequence[Device],
        residents: Sequence[Resident] = (),
        *,
        freedom: Freedom,
        ceilings: Mapping[str, int] | None = None,
    ) -> LaunchPlan:
        """The plan beside `residents`, or values.reason.Refused."""
        ...


@dataclass(frozen=True)
class Question:
    """What happens to a start now? Called for the answer."""

    asker: Applicant
    residents: tuple[Resident, ...]
    leaving: tuple[Resident, ...]
    """Those that end before it starts, whatever is decided."""
    before: tuple[Claim, ...]
    prepared: Prepared
    devices: tuple[Device, ...]
    ceilings: Mapping[str, int]
    planner: Places
    limits: PoolLimits

    def __call__(self) -> Decision[LaunchPlan]:
        """The decision. Raises Refused for what no room would help."""
        return decide(
            self.asker,
            self.residents,
            self.before,
            self._place,
            evict=self.limits.evict,
            offload=self.limits.offload,
        )

    def _place(self, gone: frozenset[str], freedom: Freedom, kept: Mapping[str, int]) -> LaunchPlan | Reason:
        staying = tuple(resident for resident in self.residents if resident.instance not in gone)
        if kept:
            # Spoken for by others that wait: as good as promised.
            staying += (Resident("", "", 0, self.limits.name, "promised", kept),)
        try:
            return self.planner.place(
                self.prepared, self._without(gone), staying, freedom=freedom, ceilings=self.ceilings
            )
        except Refused as refusal:
            if refusal.failure.reason.code != DOES_NOT_FIT:
                raise
            return refusal.failure.reason

    def _without(self, gone: frozenset[str]) -> tuple[Device, ...]:
        """The devices as they will be listed when those are gone. What a start under way will hold is not
        listed as taken yet."""
        freed: Counter[str] = Counter()
        for resident in (*self.leaving, *(r for r in self.residents if r.instance in gone)):
            if resident.holding != "promised":
                freed.update(resident.bytes)
        return after_return(self.devices, freed)
