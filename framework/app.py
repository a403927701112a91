"""Assembly: make all parts of one manager, connect them, and run them until a signal (00 §2).

Called by the command `up`. Decides nothing that a part could decide; it is the only module that knows all
of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import uvloop
from starlette.applications import Starlette

from framework import __version__, state_dir
from framework.api.model_files import ModelFiles
from framework.api.routes import api_routes
from framework.api.services import Services
from framework.api.sessions import Sessions
from framework.console import Console, set_up_logging
from framework.dashboard.routes import dashboard_routes
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.inquiry import Inquiry, LoadText
from framework.listener import Listening, keep_closed, serve_http
from framework.manifest.load import Loaded, check_text, load_manifest
from framework.models.facts import FactsReader
from framework.models.hub.sources import HubSources
from framework.proxy.limits import ProxyLimits, read_limits
from framework.proxy.routes import public_routes
from framework.proxy.services import ProxyServices
from framework.reconcile.apply import Reconciler
from framework.reconcile.current import CurrentManifest
from framework.reconcile.watch import Watcher
from framework.runtime.fleet import Fleet
from framework.runtime.planner import FactPlanner
from framework.runtime.shop import Shop
from framework.runtime.slot_files import drop_orphans, drop_undeclared
from framework.runtime.sweep import end_orphans
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog, utc_now
from framework.values.manifest import Manifest
from framework.values.override import Override
from framework.values.problem import Problem
from framework.values.process import DEBUG_VARIABLE
from framework.web_assets import static_dir, templates_dir

log = logging.getLogger(__name__)

# What commands need to find us is looked after this often.
KEEP_S = 5.0


def serve(manifest_path: Path, overrides: Mapping[str, Override]) -> int:
    """Run the manager of a manifest in the foreground until SIGINT or SIGTERM; the exit status.

    `overrides` stand above `[server]` fields. Raises ManifestBroken, ListenerTaken,
    StateDirError or LimitError.
    """
    environ = dict(os.environ)
    set_up_logging(debug=DEBUG_VARIABLE in environ)
    limits = read_limits(environ)

    def load(text: str | None = None) -> Loaded:
        if text is None:
            return load_manifest(manifest_path, environ, overrides=overrides)
        return check_text(manifest_path, text, environ, overrides=overrides)

    first = load()
    if first.manifest is None:
        raise ManifestBroken(first)
    directory = state_dir.locate(manifest_path, first.manifest.server.state_dir)
    state_dir.prepare(directory)
    with state_dir.hold(directory):
        try:
            start = Start(first.manifest, first.problems, load, directory, environ, limits)
            return uvloop.run(_run(start))
        finally:
            state_dir.forget(directory)


class ManifestBroken(Exception):
    """The manifest has errors; `loaded` holds them all."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded.problems[0].sentence)
        self.loaded = loaded


@dataclass(frozen=True)
class Start:
    """What is known before the event loop runs. `problems` are warnings of the first manifest."""

    manifest: Manifest
    problems: tuple[Problem, ...]
    load: LoadText
    directory: Path
    environ: Mapping[str, str]
    limits: ProxyLimits


class Manager:
    """All parts of one `up`, connected. Made inside the event loop that runs it, with the listener open."""

    def __init__(self, start: Start) -> None:
        manifest, directory, environ = start.manifest, start.directory, start.environ
        listening = Listening.open(manifest.server.listen)

        def load_closed(text: str | None = None) -> Loaded:
            return keep_closed(start.load(text), listening.address)

        changes = Changes()
        events = EventLog(changes)
        probes = CapabilityCache()
        sources, reader, devices = HubSources(environ), FactsReader(), DeviceCache()
        planner = FactPlanner(
            probes,
            environ,
            base_dir=manifest.path.parent,
            sources=sources,
            reader=reader,
            devices=devices,
            state_dir=directory,
        )
        shop = Shop(events, planner, directory, state_dir.identity(directory))
        devices.held = shop.ledger.endpoints_held
        fleet = Fleet(shop, changes)
        current = CurrentManifest(manifest, utc_now(), start.problems)
        reconciler = Reconciler(current, load_closed, fleet, events, adopt=self._adopt)
        self._inquiry = Inquiry(
            current, load_closed, reconciler.notices, fleet, planner, probes, environ, directory, devices
        )
        shop.listed = lambda: self._inquiry.known_devices().devices
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._shop = shop
        self._planner = planner
        self._listening = listening
        self._fleet = fleet
        self._current = current
        self._reconciler = reconciler
        self._watcher = Watcher(reconciler)
        self._console = Console(fleet, changes)
        self._proxy = ProxyServices(fleet=fleet, current=current, limits=start.limits)
        self._services = Services(
            version=__version__,
            started_at=utc_now(),
            listen=listening.address,
            current=current,
            fleet=fleet,
            events=events,
            changes=changes,
            token=state_dir.new_token(directory),
            sessions=Sessions(),
            check=self._inquiry.check,
            diff=self._inquiry.diff,
            plan=self._inquiry.plan,
            engines=self._inquiry.engines,
            devices=self._inquiry.devices,
            doctor=self._inquiry.doctor,
            files=ModelFiles(current, sources.find_local, reader, self._inquiry.known_devices),
            known_devices=self._inquiry.known_devices,
        )
        state_dir.record_listener(directory, str(listening.address))

    async def run(self) -> int:
        """Apply the manifest, serve until a signal, stop everything; the exit status."""
        routes = [*public_routes(self._proxy), *api_routes(self._services)]
        app = Starlette(routes=[*routes, *dashboard_routes(self._services, templates_dir(), static_dir())])
        self._console.welcome(self._current.manifest, self._listening.address)
        await self._sweep()
        self._reconciler.begin()
        parts = {
            "fleet": self._fleet.run(),
            "watch": self._watcher.run(),
            "devices": self._inquiry.run(),
            "console": self._console.run(),
            "state directory": self._keep_state(),
        }
        self._tasks = {name: asyncio.create_task(part, name=name) for name, part in parts.items()}
        for task in self._tasks.values():
            task.add_done_callback(_report)
        try:
            return await serve_http(
                app, self._listening, on_reload=self._watcher.nudge, before_close=self._end_models
            )
        finally:
            await _cancel(*self._tasks.values())
            await self._shop.client.close()
            await self._proxy.close()

    def _adopt(self, manifest: Manifest) -> None:
        """Take what a new manifest says before its actions are carried out."""
        self._planner.adopt(manifest)
        models = tuple(manifest.models.values())
        asyncio.get_running_loop().run_in_executor(None, drop_undeclared, self._shop.state_dir, models)

    async def _sweep(self) -> None:
        """Nothing of an earlier life may hold memory when the first plan is made, or be left half written."""
        await asyncio.to_thread(drop_orphans, self._shop.state_dir)
        for orphan in await asyncio.to_thread(end_orphans, self._shop.state_id):
            self._services.events.record(
                "orphan",
                f"ended process {orphan.pid} ({orphan.exe}), left behind by {orphan.instance}",
                data={"pid": orphan.pid, "exe": orphan.exe, "gone": orphan.gone},
            )

    async def _keep_state(self) -> None:
        """Commands find us and prove themselves by files that somebody may delete."""
        directory, address = self._shop.state_dir, str(self._listening.address)
        while True:
            await asyncio.sleep(KEEP_S)
            try:
                await asyncio.to_thread(state_dir.keep, directory, self._services.token, address)
            except state_dir.StateDirError as error:
                log.warning("%s", error)

    async def _end_models(self) -> None:
        """No more applies, then no more models, then no more readers."""
        self._console.farewell()
        await _cancel(self._tasks["watch"])
        await self._fleet.close(self._current.manifest.server.shutdown_s)
        self._services.events.close()
        self._services.changes.close()


async def _run(start: Start) -> int:
    return await Manager(start).run()


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    """A part that ends by a fault is told at once, not at the end of the manager."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the part %s ended by a fault", task.get_name(), exc_info=error)
