"""A running system for the API, without processes: a fleet that records, and an ASGI client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from framework.api.answers import (
    DevicesAnswer,
    DiffAnswer,
    DoctorCheck,
    EngineAnswer,
    PlanAnswer,
    RefusedInstance,
    WayAnswer,
)
from framework.api.model_files import ModelFiles
from framework.api.routes import api_routes
from framework.api.services import Services
from framework.api.sessions import Sessions
from framework.manifest.load import Loaded
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.proxy.allowances import Allowances
from framework.proxy.inflight import InFlight
from framework.proxy.routes import Served
from framework.reconcile.current import CurrentManifest
from framework.runtime.engine_metrics import EngineSample
from framework.runtime.logs import LogBuffer
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.telemetry.meters import Meters
from framework.telemetry.request_log import RequestLog
from framework.values.action import FieldChange, ModelAction, StopMode
from framework.values.engine import EngineRef
from framework.values.event import Event
from framework.values.instance import ModelView, State
from framework.values.manifest import AccessKey, Listener
from framework.values.pool import PoolView
from framework.values.problem import Problem
from framework.values.reason import Failure, Reason
from tests.api import samples
from tests.support.editors import make_editor

TOKEN = "token-of-this-run"
BASE_URL = "http://127.0.0.1:8080"
PROBLEM = Problem("unknown_key", "serve.toml", 3, 7, "models.x.slot", "unknown key", "slot", "", "slots")


@dataclass
class RecordingFleet:
    """Answers with fixed views and writes down the commands it is given."""

    events: EventLog
    models: dict[str, ModelView]
    logs: dict[tuple[str, int], LogBuffer] = field(default_factory=dict)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    shown: tuple[PoolView, ...] = field(default_factory=lambda: (samples.pool(),))

    def views(self) -> tuple[ModelView, ...]:
        return tuple(self.models.values())

    def view(self, model_id: str) -> ModelView | None:
        return self.models.get(model_id)

    def pools(self) -> tuple[PoolView, ...]:
        return self.shown

    def resolve(self, name: str) -> str | None:
        for model_id, view in self.models.items():
            if name in (model_id, *view.request.live.aliases):
                return model_id
        return None

    def log(self, model_id: str, replica: int = 0) -> LogBuffer | None:
        return self.logs.get((model_id, replica))

    def load(self, model_id: str, *, by: str) -> Event:
        return self._command("load", model_id, by)

    def unload(self, model_id: str, mode: StopMode, *, by: str) -> Event:
        return self._command("unload", model_id, mode, by)

    def reload(self, model_id: str, *, by: str) -> Event:
        return self._command("reload", model_id, by)

    def replan(self, model_id: str, *, by: str) -> Event:
        return self._command("replan", model_id, by)

    def _command(self, command: str, model_id: str, *rest: str) -> Event:
        _ = self.models[model_id]
        self.commands.append((command, model_id, *rest))
        return self.events.record("command", f"{command} by {rest[-1]}", model=model_id)


@dataclass
class World:
    """Everything a test may look at or change. `texts` are the manifest texts that were asked about."""

    services: Services
    fleet: RecordingFleet
    texts: list[str | None]

    @asynccontextmanager
    async def client(
        self, credential: str | None = TOKEN, **headers: str
    ) -> AsyncIterator[httpx.AsyncClient]:
        """A client of the API that proves itself with `credential`."""
        sent = dict(headers)
        if credential is not None:
            sent["authorization"] = f"Bearer {credential}"
        transport = httpx.ASGITransport(app=Starlette(routes=api_routes(self.services)))
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=sent) as client:
            yield client

    def declare(self, *access: AccessKey) -> None:
        """Put a manifest with these access tables into force, as a reload does."""
        self.services.current.manifest = replace(self.services.current.manifest, access=access)


def key(name: str, secret: str, role: str) -> AccessKey:
    """An access table."""
    return AccessKey(name, sha256(secret.encode()).hexdigest(), ("*",), role)  # type: ignore[arg-type]


def make_world(*access: AccessKey, listen: Listener | None = None, path: Path | None = None) -> World:
    """A system with the models `chat` (ready) and `org/other:q4` (stopped)."""
    changes = Changes()
    events = EventLog(changes, now=lambda: samples.NOON)
    fleet = RecordingFleet(events, _models())
    declared = samples.manifest(*access, listen=listen)
    if path is not None:
        declared = replace(declared, path=path)
    texts: list[str | None] = []

    async def check(text: str | None, file: str | None = None) -> Loaded:
        texts.append(text)
        broken = text is not None and "slot " in text
        problems = (PROBLEM,) if broken else ()
        return Loaded(None if broken else declared, problems, "b" * 64, declared.files)

    async def diff(text: str | None, file: str | None = None) -> DiffAnswer:
        loaded = await check(text)
        if loaded.manifest is None:
            return DiffAnswer(problems=loaded.problems)
        change = FieldChange("models.chat.context", 4096, 8192, "restart", "the cache is allocated at start")
        return DiffAnswer((ModelAction("chat", None, "replace", (change,)),), notices=("listen waits",))

    async def plan() -> PlanAnswer:
        refused = RefusedInstance(samples.request("org/other:q4"), 0, Failure(samples.REASON))
        in_force = current.manifest
        instances = (samples.plan(), refused)
        return PlanAnswer(in_force.path, in_force.sha256, (samples.CPU,), instances, (samples.REASON,))

    current = CurrentManifest(declared, samples.NOON)
    known = DevicesAnswer((samples.GPU, samples.CPU), sampled_at=samples.NOON)
    services = Services(
        version="1.2.3",
        started_at=samples.NOON,
        listen=listen or Listener(),
        current=current,
        fleet=fleet,
        events=events,
        changes=changes,
        requests=InFlight(),
        request_log=RequestLog(),
        token=TOKEN,
        sessions=Sessions(),
        check=check,
        diff=diff,
        editor=make_editor(current, fleet.views, events),
        ways=_no_ways,
        plan=plan,
        engines=_engines,
        devices=_devices,
        doctor=_doctor,
        files=ModelFiles(current, lambda _source: None, FactsReader(HeaderCache()), lambda: known),
        known_devices=lambda: known,
        meters=Meters(),
        allowances=Allowances(),
        engine_metrics=NoEngines(),
        serve=_no_endpoint,
    )
    return World(services, fleet, texts)


def _models() -> dict[str, ModelView]:
    return {
        "chat": samples.model("chat", samples.instance()),
        "org/other:q4": samples.model("org/other:q4", state=State.STOPPED),
    }


class NoEngines:
    """No engine runs, so none has metrics; a test may put what one says."""

    def __init__(self) -> None:
        self.said: tuple[EngineSample, ...] = ()

    async def collect(self) -> tuple[EngineSample, ...]:
        return self.said


async def _no_ways(_model: str) -> tuple[WayAnswer, ...]:
    return ()


async def _no_endpoint(scope: Scope, receive: Receive, send: Send, key: AccessKey | None) -> Served:
    """Only pages ask the endpoint."""
    raise AssertionError(scope["path"])


async def _devices() -> DevicesAnswer:
    return DevicesAnswer((samples.GPU, samples.CPU), (samples.REASON,), samples.NOON)


async def _engines() -> tuple[EngineAnswer, ...]:
    missing = EngineAnswer(EngineRef("other"), reasons=(Reason("binary_missing", "No engine."),))
    return (EngineAnswer(EngineRef(), samples.BINARY, samples.CAPS), missing)


async def _doctor() -> tuple[DoctorCheck, ...]:
    return (DoctorCheck("manifest", ok=True), DoctorCheck("listener", ok=False, reason=samples.REASON))
