"""Residents and askers of a small pool, and a rule for what fits, for tests of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framework.planning.pools.decision import Place
from framework.values.device import HOST_NAME
from framework.values.plan import Placement
from framework.values.pool import Applicant, Claim, Freedom, Resident
from framework.values.reason import Reason

GIB = 1 << 30
TOO_SMALL = Reason("does_not_fit", "It needs more than there is.", severity="error")


def resident(name: str, gib: float = 8, **changes: Any) -> Resident:
    """An idle instance on GPU `A`, unused for a minute, unless told otherwise."""
    values: dict[str, Any] = {
        "instance": name,
        "model": name,
        "replica": 0,
        "pool": "default",
        "holding": "resident",
        "bytes": {"A": int(gib * GIB)},
        "idle_s": 0.0 if changes.get("leases") else 60.0,
    }
    return Resident(**(values | changes))


def asker(name: str = "new", **changes: Any) -> Applicant:
    """A model for which one request has just come."""
    values: dict[str, Any] = {"model": name, "replica": 0, "pool": "default", "waiting": 1}
    return Applicant(**(values | changes))


def overdue(name: str = "new", **changes: Any) -> Applicant:
    """A model whose request has waited for more than its time."""
    return asker(name, **({"oldest_wait_s": 31.0} | changes))


def claim(who: Applicant, gib: float = 8, *blockers: str, device: str = "A") -> Claim:
    """It waits for so much, which these give back."""
    return Claim(who, {device: int(gib * GIB)}, frozenset(blockers))


@dataclass(frozen=True)
class Plan:
    """As little of a plan as a decision needs."""

    placement: Placement


@dataclass
class Pool:
    """GPU `A`, what is on it, and how much the asker needs within each freedom."""

    residents: Sequence[Resident]
    needs_gib: Mapping[Freedom, float]
    total_gib: float = 16
    asked: list[frozenset[str]] = field(default_factory=list)

    @property
    def place(self) -> Place[Plan]:
        """What fits is what is smaller than the rest of `A`; offloaded, as much as possible is put there."""

        def place(gone: frozenset[str], freedom: Freedom, kept: Mapping[str, int]) -> Plan | Reason:
            self.asked.append(gone)
            held = sum(r.bytes.get("A", 0) for r in self.residents if r.instance not in gone)
            held += kept.get("A", 0)
            room = int(self.total_gib * GIB) - held
            need = int(self.needs_gib.get(freedom, self.needs_gib["whole"]) * GIB)
            if freedom == "offloaded" and "offloaded" in self.needs_gib:
                most = int(self.needs_gib["whole"] * GIB)
                if need <= room:
                    on_gpu = min(room, most)
                    return Plan(Placement(needs_bytes={"A": on_gpu, HOST_NAME: most - on_gpu}))
            elif need <= room:
                return Plan(Placement(needs_bytes={"A": need}))
            return TOO_SMALL

        return place
