"""Immutable snapshots of what runs, for readers: instances, slots, models (07 §0, §2, 13 §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from framework.values.plan import LaunchPlan, LaunchResult
from framework.values.reason import Reason
from framework.values.request import ModelRequest
from framework.values.spec_yield import NO_TOTALS, NOT_MEASURED, SpecTotals, SpecYield, SpeedAt


class State(StrEnum):
    """States of an instance (07 §2.1)."""

    PENDING = "pending"
    FETCHING = "fetching"
    PLANNING = "planning"
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPING = "stopping"
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


SERVING = frozenset({State.READY, State.DRAINING, State.STOPPING})
"""An instance in one of these has served and still has its process."""
PUBLIC_ORDER = (
    State.READY,
    State.DRAINING,
    State.STARTING,
    State.PLANNING,
    State.FETCHING,
    State.PENDING,
    State.STOPPING,
    State.BACKOFF,
    State.FAILED,
    State.STOPPED,
)
"""A model shows the first of these that one of its replicas has (07 §2.3)."""


@dataclass(frozen=True)
class LoadProgress:
    """How far a starting server has come in reading its files (02 §13)."""

    phase: Literal["fetching", "mapping", "ready"]
    loaded_bytes: int
    total_bytes: int
    fraction: float
    file: str = ""
    eta_s: float | None = None


@dataclass(frozen=True)
class ExitInfo:
    """The end of a process. `code` is negative for a signal; `hard`: the program broke (06 §12.4)."""

    code: int | None
    hard: bool
    planned: bool
    seconds_ready: float


@dataclass(frozen=True)
class Slot:
    """One lane of an engine. Counts are tokens; `stale_s` is the age of the sample in seconds."""

    id: int
    state: Literal["idle", "processing_prompt", "generating"]
    context_tokens: int
    context_limit: int
    prompt_tokens: int
    prompt_done: int
    generated: int
    tokens_per_s: float | None
    draft: Mapping[str, Any] | None
    request_id: str | None
    stale_s: float


@dataclass(frozen=True)
class InstanceView:
    """One instance as it is now. `instance` is `<model>.<replica>@<generation>`."""

    instance: str
    model: str
    replica: int
    generation: int
    state: State
    since: datetime
    restarts: int
    last_error: Reason | None
    progress: LoadProgress | None
    pid: int | None
    port: int | None
    request: ModelRequest
    plan: LaunchPlan | None
    result: LaunchResult | None
    last_exit: ExitInfo | None
    inflight: int
    slots: tuple[Slot, ...] = ()
    prompt_tokens_per_s: float | None = None
    generation_tokens_per_s: float | None = None
    retry_in_s: float | None = None
    """Seconds until the next start while in `backoff`."""
    idle_s: float | None = None
    """Seconds without a request while it serves; None while one runs, or while it does not serve."""
    speculation: SpecTotals = NO_TOTALS
    """What it drafted since it was ready."""

    @property
    def running(self) -> LaunchResult | None:
        """What the process turned out to do; None without one, since `result` outlasts it (07 §5.7)."""
        known = self.state in SERVING and self.result is not None and self.result.outcome == "ready"
        return self.result if known else None

    @property
    def granted(self) -> LaunchPlan | None:
        """The plan in force; None of a stopped instance, whose `plan` is of its last start."""
        return None if self.state is State.STOPPED else self.plan


@dataclass(frozen=True)
class QueueView:
    """Requests that wait for a model to be ready."""

    waiting: int
    limit: int
    oldest_wait_s: float | None
    eta_s: float | None
    """Until the model can serve, from measured times; None when that is not known."""
    position: int | None = None
    """Place of the model among those that wait for memory of its pool, from 1; None while it does not."""


@dataclass(frozen=True)
class ModelView:
    """One declared model (or one that drains after its removal) as it is now."""

    request: ModelRequest
    state: State
    replacing: bool
    queue: QueueView
    instances: tuple[InstanceView, ...]
    removed: bool = False
    """No longer declared; only finishing what it serves."""
    stopped_by_command: bool = False
    going: bool = False
    """What runs was told to end, by a command, idleness or a smaller number of replicas."""
    spec_yield: SpecYield = NOT_MEASURED
    """What its drafting was measured to bring."""

    @property
    def speeds(self) -> tuple[SpeedAt, ...]:
        """Speeds with drafting and without, by what drafted, then by busy slots."""
        return self.spec_yield.speeds
