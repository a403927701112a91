"""A start that wants memory: who it is, what may be asked of it, and where it stands in its queue.

Made by runtime.replica; runtime.admission and runtime.pool_queue keep `standing` up to date.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from framework.runtime.instance import Instance
from framework.runtime.planner import Prepared
from framework.values.plan import LaunchPlan
from framework.values.pool import Applicant, Claim
from framework.values.reason import Reason


class Unwanted(Exception):
    """Nobody waits for the start any more."""


class Moved(Exception):
    """Its model is in another pool now."""


@dataclass
class Standing:
    """What the queue knows of one start that waits."""

    since_s: float
    answer: asyncio.Future[LaunchPlan]
    prepared: Prepared | None = None
    prepared_s: float = 0.0
    verdict: Reason | None = None
    """What it waits for, or why it finds no room."""
    is_refused: bool = False
    """It finds no room, and goes on looking only because nothing else is to be done."""
    claim: Claim | None = None
    """What those that come later must not take from it."""
    again_in_s: float | None = None
    """When time alone may change that."""
    told_to_leave: tuple[str, ...] = ()
    """Instances that make room for it."""


@dataclass(eq=False)
class Seeker:
    """One start. The callables are asked anew for each decision."""

    instance: Instance
    prepare: Callable[[], Awaitable[Prepared]]
    asks: Callable[[], Applicant]
    is_wanted: Callable[[], bool]
    may_evict: Callable[[], bool]
    """Whether others may be sent away for it now."""
    changed: Callable[[], None]
    """Called when what it waits for has changed."""
    is_going: Callable[[Instance], bool]
    evict: Callable[[str], None]
    spare: Callable[[], None]
    gone: frozenset[str] = frozenset()
    """Instances that end before it starts."""
    ceilings: Mapping[str, int] = field(default_factory=dict)
    """The most that it may need of a device, by name."""
    standing: Standing | None = None

    @property
    def verdict(self) -> Reason | None:
        """What it waits for; None while that is not known, or it does not wait."""
        return self.standing.verdict if self.standing else None
