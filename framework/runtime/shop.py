"""What all replicas of the fleet share: events, ports, the engine client, the planner, limits, places.

Built once by the fleet. Holds no state of any model.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from framework.models.hub.facts import ResolvedSource
from framework.planning.speculation.profit import DEFAULT_LIMITS, WatchLimits
from framework.runtime.admission import Admission
from framework.runtime.engine_client import EngineClient
from framework.runtime.instance import Instance
from framework.runtime.launch import Site
from framework.runtime.ledger import Ledger
from framework.runtime.planner import Prepared
from framework.runtime.planning import Planning
from framework.runtime.ports import PortTable
from framework.runtime.records import FOLDER, Named, Trace
from framework.runtime.silence import DEFAULT_HEALTH, HealthLimits
from framework.runtime.slot_files import slot_folder
from framework.telemetry.events import EventLog
from framework.values.device import Device
from framework.values.instance import LoadProgress, ModelView
from framework.values.manifest import ServerSettings
from framework.values.naming import file_name
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, Withheld
from framework.values.pool import Resident
from framework.values.request import ModelRequest

# Networks come back within minutes; later, a question an hour bothers nobody.
DRAFTER_PAUSES_S = (60.0, 240.0, 600.0, 3600.0)


LOGS = "logs"


def logs_of(model: str, replica: int) -> str:
    """Name of the folder with the logs of a replica."""
    return f"{file_name(model)}.{replica}"


class Looks(Protocol):
    """The fleet as readers see it."""

    def views(self) -> tuple[ModelView, ...]:
        """All models."""


def logs_in_use(fleet: Looks) -> set[str]:
    """Folders of models that are declared, or still end."""
    views = fleet.views()
    kept = {logs_of(v.request.id, n) for v in views for n in range(v.request.live.replicas)}
    return kept | {logs_of(v.request.id, i.replica) for v in views for i in v.instances}


class Planner(Planning, Protocol):
    """Facts in, plan out: finds files and engine, plans the launch."""

    async def fetch(self, request: ModelRequest, progress: Callable[[LoadProgress], None]) -> ResolvedSource:
        """The model's files on this machine, downloaded where they are missing, or values.reason.Refused."""
        ...

    async def prepare(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource | None = None,
        *,
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> Prepared:
        """All that a plan depends on save what is free, or values.reason.Refused."""
        ...

    async def plan(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource | None = None,
        *,
        residents: Sequence[Resident] = (),
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> LaunchPlan:
        """The plan beside `residents` without what is `withheld`, or values.reason.Refused. Without `source`
        only files that are here already count."""
        ...


class StartLimit:
    """At most `server.start_concurrency` instances in fetching ... starting (07 §4.8), in order of arrival.

    The limit is live: a raised one lets waiting starts go at once.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def set_limit(self, limit: int) -> None:
        """A new limit; starts under way go on."""
        self._limit = limit
        self._admit()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            else:
                # It may have been taken from the queue already, as one that is done.
                with contextlib.suppress(ValueError):
                    self._waiting.remove(turn)
            raise
        try:
            yield
        finally:
            self._leave()

    def _admit(self) -> None:
        while self._waiting and self._active < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)

    def _leave(self) -> None:
        self._active -= 1
        self._admit()


@dataclass
class Shop:
    """The shared parts. `server` is replaced when the manifest changes."""

    events: EventLog
    planner: Planner
    state_dir: Path
    state_id: str
    server: ServerSettings = ServerSettings()
    ports: PortTable = field(default_factory=PortTable)
    client: EngineClient = field(default_factory=EngineClient)
    starts: StartLimit = field(default_factory=lambda: StartLimit(ServerSettings().start_concurrency))
    waiting: int = 0
    """Requests that wait for a model, over all models."""
    shutting_down: bool = False
    left_alone: frozenset[str] = frozenset()
    """Instances of an earlier life that may still run: their names, and so their records, are taken."""
    listed: Callable[[], Sequence[Device]] = tuple
    """The devices as last listed, in their pools; starts nothing."""
    watch_limits: WatchLimits = DEFAULT_LIMITS
    """When drafting counts as a loss, for the yield watches of all models."""
    health: HealthLimits = DEFAULT_HEALTH
    """When an engine counts as hung."""
    drafter_pauses_s: tuple[float, ...] = DRAFTER_PAUSES_S
    """Before each new look for a drafter that could not be had; the last one again and again."""
    swaps: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """By pool: held by the one replica that is replaced by stopping it first (07 §4.8)."""
    ledger: Ledger = field(default_factory=Ledger)
    admission: Admission = field(init=False)

    @property
    def leaves(self) -> bool:
        """Whether the manager ends, and leaves what it can to the next one."""
        return self.shutting_down and self.server.on_exit == "keep"

    def site(self, instance: Instance) -> Site:
        """Where launches of an instance happen."""
        return Site(
            instance.log,
            self.state_dir / LOGS / logs_of(instance.request.id, instance.replica),
            self.state_dir / "run" / instance.file_name,
            self.ports,
            self.client,
            slot_folder(self.state_dir, instance.request.id, instance.replica),
            self.trace(instance.named),
        )

    def trace(self, named: Named) -> Trace:
        """Where the process of an instance is noted, for another life of this manager."""
        outlives = self.server.on_exit == "keep"
        return Trace(self.state_dir / FOLDER, self.state_id, named, outlives=outlives)

    def __post_init__(self) -> None:
        self.admission = Admission(self.ledger, lambda: self.planner, self.events)
