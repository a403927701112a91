"""What the API and the dashboard are given: the running system, behind the narrowest types they need.

Made once by `app` at start. Holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from starlette.types import Receive, Scope, Send

from framework.api.answers import DevicesAnswer, DiffAnswer, DoctorCheck, EngineAnswer, PlanAnswer, WayAnswer
from framework.api.model_files import ModelFiles
from framework.api.reason_guide import ReasonGuide, installed_guide
from framework.api.sessions import Sessions
from framework.api.turns import Turns
from framework.editing.editor import Editor
from framework.manifest.load import Loaded
from framework.proxy.allowances import Allowances
from framework.proxy.key_guesses import KeyGuesses
from framework.proxy.records import RequestView
from framework.proxy.routes import Served
from framework.reconcile.current import CurrentManifest
from framework.runtime.engine_metrics import EngineSample
from framework.runtime.logs import LogBuffer
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.telemetry.history import History
from framework.telemetry.meters import Meters
from framework.telemetry.request_log import RequestLog
from framework.values.action import StopMode
from framework.values.event import Event
from framework.values.instance import ModelView
from framework.values.manifest import AccessKey, Listener
from framework.values.pool import PoolView


class ActiveRequests(Protocol):
    """The requests of clients that are served now, as the API sees them."""

    def views(self) -> tuple[RequestView, ...]:
        """All of them, oldest first."""

    def find(self, request_id: str) -> RequestView | None:
        """One by its id."""

    def cancel(self, request_id: str) -> bool:
        """End one; whether there is one with this id."""


class FleetView(Protocol):
    """The fleet as the API sees it: snapshots, logs and the commands. Nothing here waits."""

    def views(self) -> tuple[ModelView, ...]:
        """All models in declared order."""

    def view(self, model_id: str) -> ModelView | None:
        """One model by id."""

    def pools(self) -> tuple[PoolView, ...]:
        """All pools in declared order, with what is known of their devices."""

    def resolve(self, name: str) -> str | None:
        """The id of a name or alias, compared exactly."""

    def log(self, model_id: str, replica: int = 0) -> LogBuffer | None:
        """The engine's output lines of one replica; None when it never ran."""

    def load(self, model_id: str, *, by: str) -> Event:
        """Start it; returns the event of the command. KeyError for an unknown id."""

    def unload(self, model_id: str, mode: StopMode, *, by: str) -> Event:
        """Stop it (07 §5.1)."""

    def reload(self, model_id: str, *, by: str) -> Event:
        """Replace it unconditionally (07 §3.11)."""

    def replan(self, model_id: str, *, by: str) -> Event:
        """Plan it anew, and replace it where that changes something."""


class AsksEngines(Protocol):
    """The engines' own metrics."""

    async def collect(self) -> tuple[EngineSample, ...]:
        """What every ready engine says, or has said; waits a moment only."""


class Check(Protocol):
    """Reads a manifest."""

    async def __call__(self, text: str | None, file: str | None = None) -> Loaded:
        """What a text in place of a file comes to; without one, the files on disk."""
        ...


class Diff(Protocol):
    """The preview of an edit."""

    async def __call__(self, text: str | None, file: str | None = None) -> DiffAnswer:
        """What a text in place of a file would do; without one, what the files on disk would."""
        ...


class ServesProven(Protocol):
    """The endpoint, for callers whose key, or None, was proven in another way than by a header."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, key: AccessKey | None, /) -> Served:
        """Serve one HTTP request to its end."""
        ...


@dataclass(frozen=True)
class Services:
    """Everything a route or a page may use. A text of None means the file as it is on disk now."""

    version: str
    started_at: datetime
    listen: Listener
    """The address that is really bound; the manifest's may wait for the next `up`."""
    current: CurrentManifest
    fleet: FleetView
    events: EventLog
    changes: Changes
    requests: ActiveRequests
    request_log: RequestLog
    token: str
    sessions: Sessions
    check: Check
    diff: Diff
    editor: Editor
    """Writes the manifest, and knows its files and what they held before."""
    ways: Callable[[str], Awaitable[tuple[WayAnswer, ...]]]
    """What could be changed for a model about its reasons, each with what the planner makes of it."""
    plan: Callable[[], Awaitable[PlanAnswer]]
    engines: Callable[[], Awaitable[tuple[EngineAnswer, ...]]]
    devices: Callable[[], Awaitable[DevicesAnswer]]
    """Lists the devices now; callers that come together share one list. A failure is a reason, no error."""
    doctor: Callable[[], Awaitable[tuple[DoctorCheck, ...]]]
    files: ModelFiles
    known_devices: Callable[[], DevicesAnswer]
    """The devices as last listed, in the pools of the manifest in force; never starts a process."""
    meters: Meters
    allowances: Allowances
    engine_metrics: AsksEngines
    serve: ServesProven
    """The endpoint for requests of pages: the very one that other clients have."""
    reasons: ReasonGuide = field(default_factory=installed_guide)
    """What every code of a reason means."""
    guesses: KeyGuesses = field(default_factory=KeyGuesses)
    """Keys that came, here or at the endpoint."""
    turns: Turns = field(default_factory=Turns)
    """At looking at texts of the manifest, on disk or typed."""
    applies: Turns = field(default_factory=Turns)
    """At writing one: nobody who only looks is in the way."""
    certificate_ends_at: Callable[[], datetime | None] = lambda: None
    """When the certificate of the listener ends; None without one."""
    history: History = field(default_factory=History)
    """Empty until it is fed."""
