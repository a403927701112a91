"""Find out what a launch depends on, off the event loop, and make its plan (06 §1.2, §2.7).

Called by replicas before each start and by the `plan` commands, so that both show the same plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framework.engines.args import RPC_FLAG, RPC_VARIABLE, values_of
from framework.engines.child_env import declared_environment, without_secrets
from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.hardware.devices import DeviceList, host_memory
from framework.hardware.membership import servers_of
from framework.models.facts import FactsReader
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import HubSources
from framework.models.sparse_header import headers_directory
from framework.planning.launch import LaunchFacts, plan_launch
from framework.planning.launch_place import place_launch, shown_launch
from framework.planning.launch_site import UNKNOWN_DEVICES, Launch, Site
from framework.planning.memory.shape import shape_of
from framework.planning.pool_hardware import is_accelerated, is_host_pool
from framework.planning.slot_saving.grant import cache_kind
from framework.runtime.ahead import ALL_HERE, Remotes, as_downloaded, find_ahead
from framework.runtime.fetching import fetch_files, local_files
from framework.runtime.file_facts import FileFacts, file_facts, model_id
from framework.runtime.measurements import Measurements
from framework.runtime.measuring import Measuring
from framework.runtime.memory_planner import MemoryPlanner
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.instance import LoadProgress
from framework.values.manifest import Manifest
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, Withheld
from framework.values.pool import Freedom, Resident
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """All that a plan depends on save what is free: files, engine, and the devices as they were listed."""

    request: ModelRequest
    replica: int
    launch: Launch
    files: tuple[FileId, ...]
    """All that the launch loads."""
    devices: DeviceList
    asking: Mapping[str, str]
    """The environment in which the engine is asked for devices."""
    servers: tuple[str, ...] = ()
    """`host:port` of those that are asked as well."""


@dataclass(frozen=True)
class _Made:
    """A plan, what it was made of, and the plan as it was measured before."""

    plan: LaunchPlan
    prepared: Prepared
    recalled: LaunchPlan | None


class FactPlanner:
    """Plans launches from what is on this machine now."""

    def __init__(
        self,
        capabilities: CapabilityCache,
        environ: Mapping[str, str],
        *,
        base_dir: Path,
        sources: HubSources | None = None,
        reader: FactsReader | None = None,
        devices: DeviceCache | None = None,
        state_dir: Path | None = None,
        headers_dir: Path | None = None,
    ) -> None:
        """`state_dir` keeps measurements, `headers_dir` the headers of models that are not here."""
        self.secret_names: tuple[str, ...] = ()
        self._servers: tuple[str, ...] = ()
        self._sources = sources or HubSources(environ)
        self._reader = reader or FactsReader()
        self._memory = MemoryPlanner(self._reader)
        self._measuring = Measuring(Measurements(state_dir))
        self._headers_dir = headers_dir or headers_directory()
        self._devices = devices or DeviceCache()
        self._capabilities = capabilities
        self._environ = environ
        self._base_dir = base_dir

    def adopt(self, manifest: Manifest) -> None:
        """Take what a new manifest says that no single request holds: secrets and remote servers."""
        self.secret_names = manifest.secret_names
        self._servers = servers_of(manifest.pools.values())

    async def fetch(self, request: ModelRequest, progress: Callable[[LoadProgress], None]) -> ResolvedSource:
        """The files on this machine; downloads what is missing of hub sources. Raises Refused."""
        return await fetch_files(self._sources, request, progress)

    async def prepare(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource | None = None,
        *,
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> Prepared:
        """Find out what a launch depends on. Raises Refused. Downloads nothing: `fetch` gives `source`."""
        if source is None:
            source = await asyncio.to_thread(local_files, self._sources, request)
        return await self._prepare(request, replica, source, withheld=withheld)

    async def look(self, prepared: Prepared, *, fresh: bool = False) -> DeviceList:
        """The devices of a launch as they are now, or were a moment ago unless a `fresh` look is wanted."""
        if is_host_pool(prepared.request.pool):
            return DeviceList((host_memory(),))
        return await self._devices.get(
            prepared.launch.plan.engine,
            prepared.asking,
            rpc=prepared.servers,
            max_age_s=0.0 if fresh else None,
        )

    async def until_quiet(self, endpoints: Collection[str]) -> None:
        """Wait until nobody asks these servers for their devices. REQUIRES: an instance holds them by now."""
        await self._devices.until_quiet(endpoints)

    def place(
        self,
        prepared: Prepared,
        devices: Sequence[Device],
        residents: Sequence[Resident] = (),
        *,
        freedom: Freedom,
        ceilings: Mapping[str, int] | None = None,
    ) -> LaunchPlan:
        """The plan on devices as they are now, beside `residents`, with no more freedom than is given.

        `ceilings` are the most bytes it may need of a device. Raises Refused: `does_not_fit` where that is
        not enough, or for devices and engines that do not go together. Thread-safe; takes milliseconds.
        """
        unlisted = _still_unlisted(prepared, devices, self._devices.why_not)
        site = Site(tuple(devices), tuple(residents), unlisted, ceilings or {})
        plan = _placed(prepared.launch, lambda launch: place_launch(launch, site, freedom))
        recalled = self._measuring.recall(plan, prepared.files, devices)
        return recalled if recalled is not None and recalled.fit.fits else plan

    async def plan(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource | None = None,
        *,
        residents: Sequence[Resident] = (),
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> LaunchPlan:
        """The plan that a start would get now; one that fits nowhere is shown with what it lacks.

        Raises Refused. Starts nothing, downloads nothing. `residents` are those of a running server, and
        `withheld` is what it starts the model without.
        """
        if source is None:
            source = await asyncio.to_thread(local_files, self._sources, request)
        made = await self._make(request, replica, source, residents=residents, withheld=withheld)
        return made.recalled or made.plan

    async def measure(self, request: ModelRequest, replica: int, *, anew: bool = True) -> LaunchPlan:
        """As `plan`, with memory as the engine itself measures it, without loading anything. Raises Refused.

        Of a hub source that is not here only headers are fetched. Without `anew` a remembered answer will do.
        """
        source, remotes = await find_ahead(self._sources, request, self._headers_dir)
        made = await self._make(request, replica, source, remotes)
        known = made.recalled if remotes.any or not anew else None
        listed = made.prepared.devices.devices
        plan = known or await self._measuring.measure(made.plan, made.prepared.files, listed, anew=anew)
        return as_downloaded(plan, remotes, self._sources.cache) if remotes.any else plan

    async def _make(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource,
        remotes: Remotes = ALL_HERE,
        *,
        residents: Sequence[Resident] = (),
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> _Made:
        prepared = await self._prepare(request, replica, source, remotes, withheld=withheld)

        def made() -> _Made:
            listed = prepared.devices
            site = Site(listed.devices, tuple(residents), _about(request, listed.reasons))
            plan = _placed(prepared.launch, lambda launch: shown_launch(launch, site))
            recalled = self._measuring.recall(plan, prepared.files, listed.devices)
            return _Made(plan, prepared, recalled)

        return await asyncio.to_thread(made)

    async def _prepare(
        self,
        request: ModelRequest,
        replica: int,
        source: ResolvedSource,
        remotes: Remotes = ALL_HERE,
        *,
        withheld: Withheld = NOTHING_WITHHELD,
    ) -> Prepared:
        binary = await asyncio.to_thread(find_binary, request.engine, self._environ, base_dir=self._base_dir)
        probing = {**without_secrets(self._environ, self.secret_names), **request.engine.env}
        asking = {**probing, **request.env}
        declared = declared_environment(request, self._environ, secret_names=self.secret_names)
        servers = self._servers_for(request)
        caps, devices = await asyncio.gather(
            self._capabilities.get(binary, probing), self._usable(request, binary, asking, servers)
        )

        def prepared() -> Prepared:
            model = self._reader.read(source.main, model_id=model_id(source), template=request.template)
            found = file_facts(request, source, model, self._reader)
            facts = replace(
                self._launch_facts(found, binary, caps),
                is_accelerated=is_accelerated(request, devices.devices, declared),
                cache_kind=cache_kind(shape_of(model.header)),
                withheld=_withheld(withheld.for_engine(binary.file), found),
            )
            launch = self._memory.launch(
                plan_launch(request, replica, facts),
                facts,
                model,
                variants=remotes.smaller_variants,
                projector_bytes=remotes.projector_bytes if request.projector == "auto" else 0,
            )
            return Prepared(request, replica, launch, facts.file_ids, devices, asking, servers)

        return await asyncio.to_thread(prepared)

    def _servers_for(self, request: ModelRequest) -> tuple[str, ...]:
        """Remote servers that are asked: the user's own, else those of all pools.

        None where the pool has none itself: a launch that cannot use them asks no server.
        """
        declared = {**request.engine.env, **request.env}
        named = [declared.get(RPC_VARIABLE, ""), *values_of(request.extra_args, (RPC_FLAG,))][-1]
        own = tuple(server for server in named.split(",") if server)
        mine = servers_of([request.pool])
        if own or not mine:
            return own
        return tuple(dict.fromkeys((*self._servers, *mine)))

    async def _usable(
        self, request: ModelRequest, binary: EngineBinary, asking: Mapping[str, str], servers: tuple[str, ...]
    ) -> DeviceList:
        """What the engine will see; it is not asked where only host memory counts."""
        if is_host_pool(request.pool):
            return DeviceList((host_memory(),))
        return await self._devices.get(binary, asking, rpc=servers)

    def _launch_facts(self, found: FileFacts, binary: EngineBinary, caps: Capabilities) -> LaunchFacts:
        return LaunchFacts(
            binary=binary,
            caps=caps,
            libraries=library_path(binary, self._environ),
            files=found.files,
            file_ids=found.ids,
            environ=self._environ,
            secret_names=self.secret_names,
            context_train=found.context_train,
            projector=found.projector,
            thinking=found.thinking,
            reasoning=found.reasoning,
            notes=found.notes,
            moe_layers=found.moe_layers,
            leading_dense=found.leading_dense,
            spec=found.spec,
        )


def _withheld(withheld: Withheld, found: FileFacts) -> Withheld:
    """What a launch is not given, for what processes have shown or for what its files are."""
    return replace(withheld, drafting=withheld.drafting or found.no_drafting)


def _placed(launch: Launch, place: Callable[[Launch], LaunchPlan]) -> LaunchPlan:
    """A place; where working it out fails, the engine decides by itself (04 §10.13)."""
    try:
        return place(launch)
    except Refused:
        raise
    except Exception:
        log.exception("memory of %s cannot be planned", launch.plan.main_gguf)
        return place(replace(launch, fault="planning it failed; the log has the details"))


def _still_unlisted(
    prepared: Prepared, devices: Sequence[Device], why_not: Callable[[str], Reason | None]
) -> tuple[Reason, ...]:
    """Why something is not listed now: what was said when the launch was prepared, as far as that still is
    so, and of servers what they said last."""
    endpoints = {device.endpoint for device in devices if device.endpoint}
    has_gpus = any(device.kind == "gpu" for device in devices)
    missing = [server for server in servers_of([prepared.request.pool]) if server not in endpoints]
    latest = {server: reason for server in missing if (reason := why_not(server)) is not None}
    before = (
        reason
        for reason in _about(prepared.request, prepared.devices.reasons)
        if reason.evidence.get("endpoint") not in endpoints | latest.keys()
        and not (has_gpus and reason.code == UNKNOWN_DEVICES)
    )
    return (*before, *latest.values())


def _about(request: ModelRequest, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Without what is said of servers of other pools, which are asked only because devices are counted."""
    own = set(servers_of([request.pool]))
    return tuple(
        reason
        for reason in reasons
        if (endpoint := reason.evidence.get("endpoint")) is None or not own or endpoint in own
    )
