"""A fleet of fake or real engines in the test's own event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.engines.probe import CapabilityCache
from framework.reconcile.actions import plan_actions
from framework.runtime.fleet import Fleet
from framework.runtime.planner import FactPlanner
from framework.runtime.shop import Shop
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.engine import EngineRef
from framework.values.event import Event
from framework.values.instance import InstanceView, State
from framework.values.manifest import Manifest, ServerSettings
from framework.values.request import LiveSettings, ModelRequest, ModelSource, PoolLimits
from tests.support.fakes import FakeEngine

WAIT_S = 60.0
# The tiny model takes 5 GiB of host memory: there is no room for a second instance beside the first.
ALONE = PoolLimits("alone", ("cpu",), budget_bytes=8 * 2**30)


class FleetRig:
    """The tiny vocabulary of the runtime tests: declare, wait for a state, look at events."""

    def __init__(self, directory: Path) -> None:
        self.changes = Changes()
        self.events = EventLog(self.changes)
        planner = FactPlanner(CapabilityCache(), dict(os.environ), base_dir=directory)
        self.shop = Shop(self.events, planner, directory / "state", "test")
        self.fleet = Fleet(self.shop, self.changes)
        self.directory = directory

    def declare(self, *requests: ModelRequest, server: ServerSettings | None = None) -> None:
        """Apply a manifest with exactly these models."""
        models = {request.id: request for request in requests}
        manifest = Manifest(
            self.directory / "serve.toml", "0" * 64, (), server=server or ServerSettings(), models=models
        )
        self.fleet.apply(manifest, plan_actions(models, self.fleet.views()))

    def instance(self, model: str, replica: int = 0) -> InstanceView:
        """The instance that a person would see."""
        view = self.fleet.view(model)
        assert view is not None, f"no model {model}"
        return next(i for i in view.instances if i.replica == replica)

    async def until(self, model: str, *states: State, wait_s: float = WAIT_S) -> InstanceView:
        """Wait until the model's instance is in one of the states."""
        async with asyncio.timeout(wait_s):
            while True:
                seen = self.changes.version
                view = self.fleet.view(model)
                shown = view.instances[0] if view and view.instances else None
                if shown is not None and shown.state in states:
                    return shown
                await self.changes.wait(seen)

    async def until_gone(self, model: str, wait_s: float = WAIT_S) -> None:
        """Wait until nothing is left of a removed model."""
        async with asyncio.timeout(wait_s):
            while self.fleet.view(model) is not None:
                await asyncio.sleep(0.02)

    def kinds(self, model: str | None = None) -> list[str]:
        """Kinds of events so far, states left out."""
        return [e.kind for e in self.events.recent(model=model, limit=1000) if e.kind != "state"]

    def event(self, kind: str) -> Event:
        """The newest event of a kind."""
        found = self.events.recent(kind=kind, limit=1)
        assert found, f"no event {kind}; there are {self.kinds()}"
        return found[0]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[FleetRig]:
    """A running fleet; its processes are ended afterwards."""
    rig = FleetRig(tmp_path)
    running = asyncio.create_task(rig.fleet.run())
    yield rig
    await rig.fleet.close(10.0)
    running.cancel()
    await asyncio.wait({running})
    await rig.shop.client.close()


def request_for(
    engine: FakeEngine | Path,
    model: Path,
    name: str = "m",
    *,
    live: dict[str, Any] | None = None,
    **fields: Any,
) -> ModelRequest:
    """A request for a model served by this engine."""
    path = engine if isinstance(engine, Path) else engine.path
    settings = {"load": "at-start", "idle_after_s": None, **(live or {})}
    values: dict[str, Any] = {"n_ctx": 1024, "slots": 2, "engine": EngineRef(path=path), **fields}
    return ModelRequest(id=name, source=ModelSource(path=model), live=LiveSettings(**settings), **values)


def changed(request: ModelRequest, **fields: Any) -> ModelRequest:
    """The request with other launch fields."""
    return replace(request, **fields)


def alive(pids: Iterable[int]) -> list[int]:
    """Which of these processes exist and are no zombies."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state not in ("Z", "X"):
            found.append(pid)
    return found
