"""Assembly: make all parts of one manager, connect them, and run them until a signal (00 §2).

Called by the command `up`. Decides nothing that a part could decide; it is the only module that knows all
of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import uvloop
from starlette.applications import Starlette

from framework import __version__, state_dir
from framework.api.routes import api_routes
from framework.api.services import Services
from framework.api.sessions import Sessions
from framework.console import Console, set_up_logging
from framework.dashboard.routes import dashboard_routes
from framework.engines.probe import CapabilityCache
from framework.inquiry import Inquiry, LoadText
from framework.listener import Listening, serve_http
from framework.manifest.load import Loaded, check_text, load_manifest
from framework.proxy.routes import public_routes
from framework.proxy.services import ProxyServices
from framework.reconcile.apply import Reconciler
from framework.reconcile.current import CurrentManifest
from framework.reconcile.watch import Watcher
from framework.runtime.fleet import Fleet
from framework.runtime.planner import FactPlanner
from framework.runtime.shop import Shop
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog, utc_now
from framework.values.manifest import Manifest
from framework.web_assets import static_dir, templates_dir

log = logging.getLogger(__name__)

STATE_ID_BYTES = 8
DEBUG_VARIABLE = "PADDOCK_DEBUG"


def serve(manifest_path: Path, overrides: Mapping[str, str]) -> int:
    """Run the manager of a manifest in the foreground until SIGINT or SIGTERM; the exit status.

    `overrides` are `[server]` fields as texts. Raises ManifestBroken, ListenerTaken or
    StateDirError.
    """
    environ = dict(os.environ)
    set_up_logging(debug=DEBUG_VARIABLE in environ)

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
            return uvloop.run(Manager(first.manifest, first, load, directory, environ).run())
        finally:
            state_dir.forget(directory)


class ManifestBroken(Exception):
    """The manifest has errors; `loaded` holds them all."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded.problems[0].sentence)
        self.loaded = loaded


class Manager:
    """All parts of one `up`. Made inside the event loop that runs it."""

    def __init__(
        self,
        manifest: Manifest,
        first: Loaded,
        load: LoadText,
        directory: Path,
        environ: Mapping[str, str],
    ) -> None:
        self._directory = directory
        self._manifest = manifest
        self._first = first
        self._load = load
        self._environ = environ

    async def run(self) -> int:
        """Open the listener, start everything, wait for the end, stop everything."""
        changes = Changes()
        events = EventLog(changes)
        listening = Listening.open(self._manifest.server.listen)
        probes = CapabilityCache()
        planner = FactPlanner(probes, self._environ, base_dir=self._manifest.path.parent)
        shop = Shop(events, planner, self._directory, secrets.token_hex(STATE_ID_BYTES))
        fleet = Fleet(shop, changes)
        current = CurrentManifest(self._manifest, utc_now(), self._first.problems)

        def adopt(manifest: Manifest) -> None:
            planner.secret_names = manifest.secret_names

        reconciler = Reconciler(current, self._load, fleet, events, adopt=adopt)
        watcher = Watcher(reconciler)
        proxy = ProxyServices(fleet=fleet, current=current)
        inquiry = Inquiry(current, self._load, fleet, planner, probes, self._environ, self._directory)
        token = state_dir.new_token(self._directory)
        services = self._services(listening, current, fleet, events, changes, inquiry, token)
        state_dir.record_listener(self._directory, str(listening.address))
        routes = [*public_routes(proxy), *api_routes(services)]
        app = Starlette(routes=[*routes, *dashboard_routes(services, templates_dir(), static_dir())])
        console = Console(fleet, changes)
        console.welcome(self._manifest, listening.address)
        reconciler.begin()
        parts = (fleet.run(), watcher.run(), inquiry.run(), console.run())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            return await serve_http(
                app,
                listening,
                on_reload=watcher.nudge,
                before_close=lambda: fleet.close(current.manifest.server.shutdown_s),
            )
        finally:
            await _end(tasks)
            await proxy.close()

    def _services(
        self,
        listening: Listening,
        current: CurrentManifest,
        fleet: Fleet,
        events: EventLog,
        changes: Changes,
        inquiry: Inquiry,
        token: str,
    ) -> Services:
        return Services(
            version=__version__,
            started_at=utc_now(),
            listen=listening.address,
            current=current,
            fleet=fleet,
            events=events,
            changes=changes,
            token=token,
            sessions=Sessions(),
            check=inquiry.check,
            diff=inquiry.diff,
            plan=inquiry.plan,
            engines=inquiry.engines,
            devices=inquiry.devices,
            doctor=inquiry.doctor,
            known_devices=inquiry.known_devices,
        )


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
