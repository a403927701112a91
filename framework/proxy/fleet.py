"""What the endpoint needs of the fleet. Implemented by `framework.runtime.fleet`; recorded by the tests."""

from __future__ import annotations

from typing import Protocol

from framework.runtime.lease import FailureKind, Glance, Lease, RetryVerdict
from framework.values.instance import ModelView


class Fleet(Protocol):
    """Models by name, instances by lease."""

    def views(self) -> tuple[ModelView, ...]:
        """All models as they are now, in declared order. Wakes nothing."""
        ...

    def resolve(self, name: str) -> str | None:
        """The id for an id or alias, compared exactly."""
        ...

    async def glance(self, model_id: str, path: str, *, timeout_s: float) -> Glance | None:
        """What a ready instance answers to a GET, None while there is none. Wakes and holds nothing."""
        ...

    async def acquire(self, model_id: str, *, key: str | None) -> Lease:
        """A lease on an instance, after waiting for one. Raises LeaseRefused. May be cancelled."""
        ...

    async def report_failure(self, lease: Lease, kind: FailureKind, *, opened: bool) -> RetryVerdict:
        """Tell that a connection to the lease's instance broke; says what to do (08 §5.4)."""
        ...
