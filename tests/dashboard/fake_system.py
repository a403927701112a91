"""A running system of values: the dashboard looks at it, and it records what the buttons ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from framework.api.answers import (
    DevicesAnswer,
    DiffAnswer,
    DoctorCheck,
    EngineAnswer,
    PlanAnswer,
    WayAnswer,
)
from framework.api.facts import preview
from framework.api.model_files import ModelFiles
from framework.api.services import Diff, Services
from framework.api.sessions import Sessions
from framework.application import make_application
from framework.editing.editor import Editor
from framework.manifest.load import Loaded
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.proxy.allowances import Allowances
from framework.proxy.inflight import InFlight
from framework.proxy.routes import PublicEndpoint
from framework.proxy.services import ProxyServices
from framework.reconcile.current import CurrentManifest
from framework.runtime.logs import LogBuffer
from framework.telemetry.changes import Changes
from framework.telemetry.events import Earlier, EventLog
from framework.telemetry.meters import Meters
from framework.telemetry.request_log import RequestLog
from framework.values.action import StopMode
from framework.values.device import Device
from framework.values.event import Event
from framework.values.instance import ModelView
from framework.values.manifest import AccessKey, Listener, Manifest
from framework.values.pool import PoolView
from framework.values.request import ModelSource
from framework.values.request_record import RequestRecord
from tests.api.world import NoEngines
from tests.dashboard.samples import GIB, NOW
from tests.proxy.recording_fleet import RecordingFleet
from tests.support.editors import make_editor
from tests.telemetry.samples import Life

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATES = ROOT / "templates"
STATIC = ROOT / "static"
TOKEN = "token-of-this-run"
DEVICES = (
    Device("CUDA0", "gpu", 24 * GIB, 9 * GIB, "NVIDIA GeForce RTX 4090", "gpu"),
    Device("CPU", "cpu", 64 * GIB, 41 * GIB, "AMD Ryzen 9 7950X", None),
)


@dataclass
class FakeFleet:
    """Models as values. `asked` records the commands: (verb, model, mode or "", by)."""

    events: EventLog
    changes: Changes
    models: dict[str, ModelView] = field(default_factory=dict)
    logs: dict[tuple[str, int], LogBuffer] = field(default_factory=dict)
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    memory: tuple[PoolView, ...] = ()

    def views(self) -> tuple[ModelView, ...]:
        return tuple(self.models.values())

    def view(self, model_id: str) -> ModelView | None:
        return self.models.get(model_id)

    def pools(self) -> tuple[PoolView, ...]:
        return self.memory

    def resolve(self, name: str) -> str | None:
        if name in self.models:
            return name
        return next((key for key, view in self.models.items() if name in view.request.live.aliases), None)

    def log(self, model_id: str, replica: int = 0) -> LogBuffer | None:
        return self.logs.get((model_id, replica))

    def load(self, model_id: str, *, by: str) -> Event:
        return self._record("load", model_id, "", by)

    def unload(self, model_id: str, mode: StopMode, *, by: str) -> Event:
        return self._record("unload", model_id, mode, by)

    def reload(self, model_id: str, *, by: str) -> Event:
        return self._record("reload", model_id, "", by)

    def replan(self, model_id: str, *, by: str) -> Event:
        return self._record("replan", model_id, "", by)

    def put(self, *views: ModelView) -> None:
        """Show these models from now on, in addition to the others."""
        self.models.update({view.request.id: view for view in views})
        self.changes.mark()

    def show(self, *pools: PoolView) -> None:
        """Show these pools from now on."""
        self.memory = pools
        self.changes.mark()

    def remove(self, model_id: str) -> None:
        """A model that left the manifest."""
        del self.models[model_id]
        self.changes.mark()

    def write(self, model_id: str, *lines: str) -> None:
        """Output of the first replica."""
        log = self.logs.setdefault((model_id, 0), LogBuffer())
        for line in lines:
            log.append(line)

    def _record(self, verb: str, model_id: str, mode: str, by: str) -> Event:
        if self.models[model_id].removed:
            raise KeyError(model_id)
        self.asked.append((verb, model_id, mode, by))
        message = f"{verb} of {model_id} accepted"
        return self.events.record("command", message, model=model_id, data={"command": verb, "by": by})


@dataclass
class FakeSystem:
    """Everything that the dashboard is given, and the application that serves it."""

    services: Services
    fleet: FakeFleet
    current: CurrentManifest
    app: Starlette
    devices_listed: list[int]
    leases: RecordingFleet
    records: list[RequestRecord]


def make_system(
    *models: ModelView,
    access: Iterable[AccessKey] = (),
    static_dir: Path = STATIC,
    listen: Listener = Listener("127.0.0.1", 8080),
    devices: tuple[Device, ...] = DEVICES,
    started_at: datetime = NOW,
    folder: Path = Path("/etc/paddock"),
    kept: Life | None = None,
    engine_url: str = "",
) -> FakeSystem:
    """A system that declares `models`, its manifest in `folder`; its events go on from those `kept`. Its
    endpoint gives leases on the engine at `engine_url`. REQUIRES: called on the event loop that serves it."""
    changes = Changes()
    events = _event_log(changes, kept)
    fleet = FakeFleet(events, changes)
    fleet.put(*models)
    current = CurrentManifest(_manifest(folder, access, models), NOW)
    listed: list[int] = []
    answers = [DevicesAnswer()]

    async def list_devices() -> DevicesAnswer:
        listed.append(len(listed))
        answers.append(DevicesAnswer(devices, sampled_at=NOW))
        return answers[-1]

    editor = make_editor(current, fleet.views, events)
    proxy, leases, records = _endpoint(current, engine_url)
    services = Services(
        version="0.1.0",
        started_at=started_at,
        listen=listen,
        current=current,
        fleet=fleet,
        events=events,
        changes=changes,
        requests=InFlight(),
        request_log=RequestLog(kept.store if kept is not None else None),
        token=TOKEN,
        sessions=Sessions(),
        diff=_diff_of(editor, fleet),
        editor=editor,
        devices=list_devices,
        **NOTHING_KNOWN,
        files=ModelFiles(current, _nothing_fetched, FactsReader(HeaderCache()), lambda: answers[-1]),
        known_devices=lambda: answers[-1],
        meters=Meters(),
        allowances=Allowances(),
        engine_metrics=NoEngines(),
        serve=PublicEndpoint(proxy).serve_proven,
    )
    app = make_application(proxy, services, TEMPLATES, static_dir)
    return FakeSystem(services, fleet, current, app, listed, leases, records)


def _endpoint(
    current: CurrentManifest, engine_url: str
) -> tuple[ProxyServices, RecordingFleet, list[RequestRecord]]:
    """The real endpoint, over leases on one engine; what it was asked ends up in the list."""
    records: list[RequestRecord] = []
    leases = RecordingFleet(lambda: current.manifest, lambda: engine_url)
    return ProxyServices(leases, current, on_finished=records.append), leases, records


def _manifest(folder: Path, access: Iterable[AccessKey], models: Iterable[ModelView]) -> Manifest:
    declared = {view.request.id: view.request for view in models}
    return Manifest(folder / "serve.toml", "0" * 64, (), access=tuple(access), models=declared)


def _event_log(changes: Changes, kept: Life | None) -> EventLog:
    if kept is None:
        return EventLog(changes, now=lambda: NOW, store=None, earlier=Earlier())
    return EventLog(changes, now=lambda: NOW, store=kept.store, earlier=kept.earlier)


def set_access(system: FakeSystem, *access: AccessKey) -> None:
    """Another `[access]` in the manifest in force."""
    system.current.manifest = replace(system.current.manifest, access=access)


def _nothing_fetched(_source: ModelSource) -> None:
    """No hub source is on this machine."""


async def _check(text: str | None, file: str | None = None) -> Loaded:
    return Loaded(None, (), "", ())


def _diff_of(editor: Editor, fleet: FakeFleet) -> Diff:
    async def diff(text: str | None, file: str | None = None) -> DiffAnswer:
        return preview(await editor.check(text, file), fleet.views())

    return diff


async def _no_ways(_model: str) -> tuple[WayAnswer, ...]:
    return ()


async def _plan() -> PlanAnswer:
    return PlanAnswer(Path("serve.toml"), "0" * 64)


async def _engines() -> tuple[EngineAnswer, ...]:
    return ()


async def _doctor() -> tuple[DoctorCheck, ...]:
    return ()


NOTHING_KNOWN: Mapping[str, Any] = {
    "check": _check,
    "ways": _no_ways,
    "plan": _plan,
    "engines": _engines,
    "doctor": _doctor,
}
"""Questions to which this machine has no answer."""
