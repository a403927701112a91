"""Which replica gets a request (08 §2.11, 05 §11.7)."""

from __future__ import annotations

from typing import Any

from framework.runtime.instance import Instance
from framework.runtime.routing import best_replica
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.plan import LaunchResult
from framework.values.request import ModelRequest, ModelSource
from framework.values.spec_yield import PLAIN, Drafting


def a_replica(number: int, *, leases: int = 0, running: str = PLAIN, slots: int = 2) -> Instance:
    """A ready instance with so many open leases."""
    request = ModelRequest(id="m", source=ModelSource())
    instance = Instance(request, number, 1, events=EventLog(Changes()), restarts=0, on_idle=lambda _: None)
    instance.result = LaunchResult("ready", slots=slots, speculation=running)
    instance.meter.drafting = Drafting("launch", running)
    opened: Any = {object() for _ in range(leases)}
    instance.leases = opened
    return instance


def chosen(*ready: Instance, last: int | None = None, spares_drafting: bool = False) -> int:
    """The number of the replica that is chosen."""
    return best_replica(ready, last, spares_drafting=spares_drafting).replica


def test_the_least_busy_one_is_taken() -> None:
    assert chosen(a_replica(0, leases=2), a_replica(1, leases=1), last=0) == 1


def test_of_equals_the_one_with_the_warm_cache() -> None:
    assert chosen(a_replica(0), a_replica(1), last=1) == 1


def test_where_drafting_does_not_pay_the_one_without_it_is_taken_though_it_is_busier() -> None:
    ready = (a_replica(0, running="ngram-mod"), a_replica(1, leases=1))
    assert chosen(*ready, spares_drafting=True) == 1


def test_nobody_waits_for_a_slot_because_another_replica_drafts() -> None:
    ready = (a_replica(0, leases=1, running="ngram-mod"), a_replica(1, leases=2))
    assert chosen(*ready, spares_drafting=True) == 0


def test_otherwise_drafting_makes_no_difference() -> None:
    assert chosen(a_replica(0, running="ngram-mod"), a_replica(1, leases=1)) == 0
