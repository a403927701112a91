"""Assembly: make all parts of one manager, connect them, and run them until a signal (00 §2).

Called by the command `up`. Decides nothing that a part could decide; it is the only module that knows all
of them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import uvloop

from framework import __version__, state_dir
from framework.api.model_files import ModelFiles
from framework.api.services import Services
from framework.api.sessions import Sessions
from framework.api.shapes import event_json
from framework.application import make_application
from framework.certificate_watch import CertificateWatch
from framework.console import Console
from framework.editing.editor import Editor, LoadText
from framework.editing.history import History
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.inquiry import Inquiry
from framework.listener import Listening, heed_signals, hold_hang_ups, keep_closed, serve_http
from framework.log_lines import flush, set_up_logging
from framework.manifest.load import Loaded, ManifestReader
from framework.models.facts import FactsReader
from framework.models.hub.sources import HubSources
from framework.proxy.allowance_file import AllowanceFile
from framework.proxy.endpoints import route_names
from framework.proxy.limits import ProxyLimits, read_limits
from framework.proxy.records import log_record
from framework.proxy.routes import PublicEndpoint
from framework.proxy.services import ProxyServices
from framework.reconcile.apply import Reconciler
from framework.reconcile.current import CurrentManifest
from framework.reconcile.watch import Watcher
from framework.runtime.earlier_life import settle
from framework.runtime.fleet import Fleet
from framework.runtime.old_logs import remove_old_logs_daily
from framework.runtime.planner import FactPlanner
from framework.runtime.process import KILL_WAIT_S
from framework.runtime.shop import LOGS, Shop, logs_in_use
from framework.runtime.slot_files import drop_orphans, drop_undeclared
from framework.service_manager import ServiceManager
from framework.service_report import ServiceReport
from framework.telemetry.changes import Changes
from framework.telemetry.events import STORAGE, Earlier, EventLog, utc_now
from framework.telemetry.history_watch import watch
from framework.telemetry.meters import Meters
from framework.telemetry.request_log import RequestLog
from framework.telemetry.store import News, Store
from framework.telemetry.store_file import FILE_NAME
from framework.tls import Certificate
from framework.values.manifest import Manifest
from framework.values.override import Override
from framework.values.problem import Problem
from framework.values.process import DEBUG_VARIABLE
from framework.values.request_record import RequestRecord
from framework.web_assets import static_dir, templates_dir

log = logging.getLogger(__name__)

T = TypeVar("T")
# What commands need to find us is looked after this often.
KEEP_S = 5.0
ENDS: Mapping[str | None, str] = {
    "in order": "; the one before ended in order",
    "killed": "; the one before was killed, or the machine stopped",
}
"""How the life before ended, as the end of a sentence."""


def serve(manifest_path: Path, overrides: Mapping[str, Override]) -> int:
    """Run the manager of a manifest in the foreground until SIGINT or SIGTERM; the exit status.

    `overrides` stand above `[server]` fields. Raises ManifestBroken, ListenerTaken,
    StateDirError or LimitError.
    """
    hold_hang_ups()
    service_manager = ServiceManager.take(os.environ)
    environ = dict(os.environ)
    set_up_logging(debug=DEBUG_VARIABLE in environ)
    limits = read_limits(environ)

    load = ManifestReader(manifest_path, environ, overrides)
    first = Certificate(None).check(load())
    if first.manifest is None:
        raise ManifestBroken(first)
    directory = state_dir.locate(manifest_path, first.manifest.server.state_dir)
    state_dir.prepare(directory)
    with state_dir.hold(directory) as held:
        store = Store(directory / FILE_NAME, event_json)
        try:
            start = Start(
                first.manifest,
                first.problems,
                load,
                held,
                environ,
                limits,
                service_manager,
                store,
                store.open(),
            )
            return uvloop.run(_run(start))
        finally:
            store.close()
            state_dir.forget(directory)
            flush()


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
    held: state_dir.Hold
    environ: Mapping[str, str]
    limits: ProxyLimits
    service_manager: ServiceManager
    store: Store
    earlier: Earlier


class Manager:
    """All parts of one `up`, connected. Made inside the event loop that runs it, with the listener open."""

    def __init__(self, start: Start) -> None:
        manifest, directory, environ = start.manifest, start.held.directory, start.environ
        self._certificate = certificate = Certificate(manifest.server.tls)
        listening = Listening.open(manifest.server.listen)

        def load_closed(text: str | None = None, file: str | None = None) -> Loaded:
            return certificate.check(keep_closed(start.load(text, file), listening.address))

        changes = Changes()
        self._meters = Meters(route_names())
        events = EventLog(changes, store=start.store, earlier=start.earlier, observe=self._meters.event_told)
        request_log = RequestLog(start.store)
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
        adopt = each(
            planner.adopt,
            lambda new: request_log.adopt(new.server.request_log),
            self._drop_slots,
            self._show_certificate,
        )
        reconciler = Reconciler(current, load_closed, fleet, events, adopt=adopt)
        self._inquiry = Inquiry(
            current, load_closed, reconciler.notices, fleet, planner, probes, environ, directory, devices
        )
        shop.listed = lambda: self._inquiry.known_devices().devices
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._shop = shop
        self._held = start.held
        self._listening = listening
        self._fleet = fleet
        self._current = current
        self._reconciler = reconciler
        self._service_manager = start.service_manager
        self._watcher = Watcher(reconciler, on_nudge_done=start.service_manager.ready)
        self._console = Console(fleet, changes)
        self._store = start.store
        self._ended = start.earlier.ended
        finished = each(log_record, request_log.keep, self._meters.request_ended, self._show_ended)
        self._proxy = ProxyServices(fleet=fleet, current=current, limits=start.limits, on_finished=finished)
        self._allowances = AllowanceFile(directory, self._proxy.allowances)
        self._allowances.read()
        files = ModelFiles(current, sources.find_local, reader, self._inquiry.known_devices)
        editor = Editor(load_closed, current, fleet.views, History(directory), events)
        self._services = self._offer(events, changes, request_log, files, editor)
        state_dir.record_listener(directory, self._address)

    def _offer(
        self, events: EventLog, changes: Changes, request_log: RequestLog, files: ModelFiles, editor: Editor
    ) -> Services:
        """What API and dashboard are given, with a fresh token."""
        return Services(
            version=__version__,
            started_at=utc_now(),
            listen=self._listening.address,
            current=self._current,
            fleet=self._fleet,
            events=events,
            changes=changes,
            requests=self._proxy.requests,
            request_log=request_log,
            token=state_dir.new_token(self._shop.state_dir),
            sessions=Sessions(),
            check=self._inquiry.check,
            diff=self._inquiry.diff,
            editor=editor,
            ways=self._inquiry.ways,
            plan=self._inquiry.plan,
            engines=self._inquiry.engines,
            devices=self._inquiry.devices,
            doctor=self._inquiry.doctor,
            files=files,
            known_devices=self._inquiry.known_devices,
            certificate_ends_at=lambda: self._certificate.ends_at,
            meters=self._meters,
            allowances=self._proxy.allowances,
            guesses=self._proxy.guesses,
            engine_metrics=self._fleet.engine_metrics,
            serve=PublicEndpoint(self._proxy).serve_proven,
        )

    @property
    def _address(self) -> str:
        """As commands read it."""
        address, scheme = str(self._listening.address), self._certificate.scheme
        return address if scheme == "http" else f"{scheme}://{address}"

    async def run(self) -> int:
        """Apply the manifest, serve until a signal, stop everything; the exit status."""
        stop = asyncio.Event()
        with heed_signals(stop, self._reload, self._fleet.abandon):
            return await self._run(stop)

    async def _run(self, stop: asyncio.Event) -> int:
        app = make_application(self._proxy, self._services, templates_dir(), static_dir())
        self._console.welcome(self._current.manifest, self._certificate.scheme, self._listening.address)
        self._store.start(self._from_store(asyncio.get_running_loop()))
        self._say_begin()
        await self._go_on()
        self._reconciler.begin()
        parts = {
            "fleet": self._fleet.run(),
            "watch": self._watcher.run(),
            "devices": self._inquiry.run(),
            "console": self._console.run(),
            "service manager": self._report().run(),
            "state directory": self._keep_state(),
            "allowances": self._allowances.run(),
            "old logs": remove_old_logs_daily(self._shop.state_dir / LOGS, partial(logs_in_use, self._fleet)),
            "history": watch(self._fleet, self._services),
            "certificate": CertificateWatch(self._certificate, self._services.events).run(),
        }
        self._tasks = {name: asyncio.create_task(part, name=name) for name, part in parts.items()}
        for task in self._tasks.values():
            task.add_done_callback(_report)
        # To look through what stays for ever, again and again, holds up all streams for a tenth of a second.
        gc.freeze()
        try:
            return await serve_http(
                app,
                self._listening,
                stop,
                context=self._certificate.context,
                on_started=self._service_manager.ready,
                before_close=self._end_models,
            )
        finally:
            await _cancel(*self._tasks.values())
            await self._fleet.engine_metrics.close()
            await self._shop.client.close()
            await self._proxy.close()

    def _report(self) -> ServiceReport:
        """What the service manager is told besides."""
        address, current = str(self._listening.address), self._current
        changes = self._services.changes
        return ServiceReport(self._service_manager, self._fleet, changes, address, lambda: current.problems)

    def _reload(self) -> None:
        """SIGHUP."""
        self._service_manager.reloading()
        self._watcher.nudge()

    def _from_store(self, loop: asyncio.AbstractEventLoop) -> Callable[[News], None]:
        """What the thread that writes has to say becomes an event, in memory at least."""
        events = self._services.events

        def tell(news: News) -> None:
            record = partial(events.record, STORAGE, news.message, reason=news.reason)
            # At the very end there is no loop any more: then it is in the log of the terminal alone.
            try:
                loop.call_soon_threadsafe(record)
            except RuntimeError:
                log.warning("%s", news.message)

        return tell

    def _say_begin(self) -> None:
        """Where one life of the manager ends in the log and the next begins."""
        before = ENDS.get(self._ended, "")
        self._services.events.record(
            "manager",
            f"paddock {__version__} started as process {os.getpid()}{before}",
            data={"version": __version__, "pid": os.getpid(), "ended_before": self._ended},
        )

    def _show_certificate(self, manifest: Manifest) -> None:
        """The one of a manifest, which may be another one under the same name."""
        self._certificate.adopt(manifest)
        if (tls := self._certificate.tls) is not None:
            kept = (self._shop.state_dir, tls.certificate)
            asyncio.get_running_loop().run_in_executor(None, state_dir.record_certificate, *kept)

    def _drop_slots(self, manifest: Manifest) -> None:
        """Slots of models that are declared no more."""
        models = tuple(manifest.models.values())
        asyncio.get_running_loop().run_in_executor(None, drop_undeclared, self._shop.state_dir, models)

    async def _go_on(self) -> None:
        """With what an earlier life left behind: nothing of it may hold memory unseen when the first plan is
        made, or be left half written."""
        left_behind = await settle(self._shop, self._current.manifest)
        # Only now: until then an engine may still have been writing its slots.
        await asyncio.to_thread(drop_orphans, self._shop.state_dir)
        self._fleet.adopt(left_behind)

    async def _keep_state(self) -> None:
        """Commands find us and prove themselves by files that somebody may delete."""
        kept, said = (self._services.token, self._address, self._shop.state_id), ""
        while True:
            await asyncio.sleep(KEEP_S)
            shown = self._certificate.tls.certificate if self._certificate.tls else None
            before, said = said, await asyncio.to_thread(self._held.keep, *kept, shown)
            if said not in ("", before):
                log.warning("%s", said)

    def _show_ended(self, record: RequestRecord) -> None:
        """A refusal touches no instance, so that nobody else says that there is something to see."""
        self._services.history.request_ended(record)
        self._services.changes.mark()

    async def _end_models(self) -> None:
        """No more applies, then no more models, then no more readers."""
        self._console.farewell(self._current.manifest.server.on_exit)
        await _cancel(self._tasks["watch"])
        shutdown_s = self._current.manifest.server.shutdown_s
        # What outlives the shutdown gets SIGKILL, and the listener a few seconds to tell its clients.
        self._service_manager.stopping(shutdown_s + 2 * KILL_WAIT_S)
        await self._fleet.close(shutdown_s)
        self._services.events.record("manager", "paddock ends", data={"pid": os.getpid()})
        self._services.events.close()
        self._services.changes.close()


def each(*steps: Callable[[T], None]) -> Callable[[T], None]:
    """One call in place of several, in this order."""

    def call(value: T) -> None:
        for step in steps:
            step(value)

    return call


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
