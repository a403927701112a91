"""Who holds and who wants the memory of a pool (04 §16): values for decisions, and snapshots for readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from framework.values.reason import Reason
from framework.values.request import LoadMode, PoolLimits

Holding = Literal["promised", "resident", "leaving", "stuck"]
"""A start under way, a process that is ready, one that was told to end, one that outlived SIGKILL."""
Freedom = Literal["whole", "shrunk", "offloaded"]
"""How far a plan may fall short of what was asked: not at all; with a shorter automatic context or fewer
slots; with layers or experts in host memory as well."""


@dataclass(frozen=True)
class Resident:
    """An instance that holds memory of a device, or is about to."""

    instance: str
    model: str
    replica: int
    pool: str
    holding: Holding
    bytes: Mapping[str, int]
    """By device, `CPU` included; what is only mapped is left out."""
    priority: int = 0
    pinned: bool = False
    load: LoadMode = "on-demand"
    leases: int = 0
    """Requests that it serves now."""
    idle_s: float = 0.0
    """Seconds since its last request ended; 0.0 while one runs."""
    ready_s: float = inf
    """Seconds since it can serve."""
    start_s: float = 0.0
    """How long its start took; for so long it is not interrupted, however long others wait."""
    grows: Mapping[str, int] = field(default_factory=dict)
    """What it may come to hold besides, by device."""
    mapped: Mapping[str, int] = field(default_factory=dict)
    """Pages of files that it reads in place (`Placement.mapped_bytes`)."""

    @property
    def total_bytes(self) -> int:
        """Of all its devices together."""
        return sum(self.bytes.values())

    @property
    def yields_to(self) -> int:
        """The lowest priority that it makes room for, unless it is pinned."""
        return self.priority + (self.load == "at-start")


@dataclass(frozen=True)
class Applicant:
    """A replica that wants to start. Times are seconds."""

    model: str
    replica: int
    pool: str
    priority: int = 0
    load: LoadMode = "on-demand"
    waiting: int = 0
    """Requests that wait for it; 0 for a start that nobody waits for, such as one at start."""
    oldest_wait_s: float = 0.0
    """How long the request that came first has waited."""
    turn_after_s: float = 30.0
    """After this its turn comes before requests for what is resident (08 §2.10: half its queue time-out)."""

    @property
    def is_overdue(self) -> bool:
        """Whether requests have waited long enough for residents to give way once they have answered."""
        return self.waiting > 0 and self.oldest_wait_s >= self.turn_after_s


@dataclass(frozen=True)
class Claim:
    """What somebody who waits must not lose to those that come later."""

    applicant: Applicant
    needs: Mapping[str, int]
    """By device, what the plan takes that it waits for."""
    blockers: frozenset[str]
    """Instances that give it some of that when they end; only the rest is kept of what is free."""


@dataclass(frozen=True)
class DeviceUse:
    """One device of a pool: what it has, what is planned, what is really used. None is not known."""

    name: str
    kind: Literal["gpu", "cpu", "rpc"]
    description: str
    total_bytes: int
    free_bytes: int
    usable_bytes: int
    """What of it may be planned when nothing of ours is on it: `fill`, `budget` and `reserve` taken off."""
    planned_bytes: int
    """What plans of ready instances say that they hold."""
    promised_bytes: int
    """What plans of starts under way will hold."""
    measured_bytes: int | None
    """What our processes hold, as the driver or the engines say."""
    foreign_bytes: int | None
    """What other programs hold."""
    utilisation: float | None = None


@dataclass(frozen=True)
class WaitingView:
    """A replica that waits for memory."""

    model: str
    replica: int
    position: int
    """Its place among those that wait in the pool, from 1."""
    requests: int
    waited_s: float
    eta_s: float | None
    """Until it can serve, from measured times; None when that is not known."""
    reason: Reason
    """What it waits for."""


@dataclass(frozen=True)
class PoolView:
    """A pool as it is now."""

    limits: PoolLimits
    devices: tuple[DeviceUse, ...]
    residents: tuple[Resident, ...]
    next_to_leave: tuple[str, ...]
    """Instances in the order in which they would make room; those that never would are left out."""
    waiting: tuple[WaitingView, ...]
    evictions: int
    """Instances that made room for others since the manager started."""
