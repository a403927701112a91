"""Launches of hand-made plans by the ladder alone, without a fleet around it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path, with_libraries
from framework.runtime import launch
from framework.runtime.engine_client import EngineClient
from framework.runtime.ladder import Climb, Ladder, Tries
from framework.runtime.launch import Running, Site
from framework.runtime.logs import LogBuffer
from framework.runtime.ports import PortTable
from framework.runtime.records import Named, Trace
from framework.values.engine import EngineBinary, EngineRef
from framework.values.plan import Attempt, LaunchPlan
from framework.values.request import ModelRequest, ModelSource


class Coveted(PortTable):
    """The first ports that it promises are one that somebody else has."""

    def __init__(self, taken: int, times: int) -> None:
        super().__init__()
        self._taken, self._times = taken, times

    def reserve(self) -> int:
        self._times -= 1
        return super().reserve() if self._times < 0 else self._taken


def a_site(folder: Path, client: EngineClient, ports: PortTable | None = None) -> Site:
    """A place for launches of one instance, whose processes die with the test."""
    request = ModelRequest(id="demo", source=ModelSource(path=Path("/models/demo.gguf")))
    trace = Trace(folder / "instances", "test", Named(request, 0, 1, 0), outlives=False)
    logs, run, slots = folder / "logs", folder / "run", folder / "slots" / "demo.0"
    return Site(LogBuffer(), logs, run, ports or PortTable(), client, slots, trace)


class Climbs:
    """A place for launches. What got ready runs until `close`."""

    def __init__(self, folder: Path, ports: PortTable | None = None) -> None:
        (folder / "run").mkdir(parents=True)
        self.client = EngineClient()
        self.site = a_site(folder, self.client, ports)
        self.attempts: list[Attempt] = []
        self.spawned: list[Running] = []
        self.after_spawn: Callable[[Running], None] = lambda running: None

    async def climb(
        self, plan: LaunchPlan, *, timeout_s: float = 60.0, tries: Tries | None = None, rung: str = "S"
    ) -> Climb:
        """Attempts with this plan until it is ready or no rung is left."""

        def spawned(running: Running) -> None:
            self.spawned.append(running)
            self.after_spawn(running)

        ladder = Ladder(
            plan,
            self.site,
            log_stem="start",
            mark="test",
            timeout_s=lambda: timeout_s,
            on_spawn=spawned,
            on_attempt=self.attempts.append,
            on_survivors=lambda pids: None,
            tries=tries,
            rung=rung,
        )
        return await ladder.climb()

    @property
    def rungs(self) -> list[str]:
        """The changes so far, in order."""
        return [attempt.rung for attempt in self.attempts]

    def line(self, number: int = -1) -> str:
        """The line of an attempt."""
        return " ".join(self.attempts[number].argv)

    @property
    def alive(self) -> list[int]:
        """Processes of attempts that still exist."""
        return [running.child.pid for running in self.spawned if psutil.pid_exists(running.child.pid)]

    async def close(self) -> None:
        """End what runs."""
        for running in self.spawned:
            if running.child.alive:
                await launch.stop(self.site, running)
        self.site.log.close_file()
        await self.client.close()


def engine_at(path: Path) -> EngineBinary:
    """The engine of a program."""
    return find_binary(EngineRef(path=path), os.environ)


def launch_of(binary: EngineBinary, model: Path, **variables: str) -> dict[str, Any]:
    """Fields of a plan for a model that really is to be started."""
    return {
        "main_gguf": model,
        "request": ModelRequest(id="demo", source=ModelSource(path=model)),
        "env": with_libraries({**os.environ, **variables}, library_path(binary, os.environ)),
        "context": 1024,
    }
