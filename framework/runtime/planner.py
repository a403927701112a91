"""Find out what a launch depends on, off the event loop, and make its plan (06 §1.2, §2.7).

Called by replicas before each start and by the `plan` commands, so that both show the same plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from framework.engines.args import values_of
from framework.engines.child_env import without_secrets
from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path
from framework.engines.probe import CapabilityCache
from framework.hardware.device_cache import DeviceCache
from framework.hardware.devices import DeviceList, host_memory
from framework.models.facts import FactsReader, ModelFacts
from framework.models.hub.companion import with_cached_projector, with_projector
from framework.models.hub.facts import RemoteModel, ResolvedSource
from framework.models.hub.sources import HubSources
from framework.models.projector import launch_projector
from framework.models.sparse_header import headers_directory
from framework.models.thinking import launch_reasoning
from framework.planning.launch import LaunchFacts, plan_launch
from framework.planning.pool_hardware import HOST_POOL
from framework.runtime import ahead
from framework.runtime.identity import file_id
from framework.runtime.measurements import Measurements
from framework.runtime.measuring import Measuring
from framework.runtime.memory_planner import MemoryPlanner
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.instance import LoadProgress
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest

RPC_VARIABLE = "LLAMA_ARG_RPC"


@dataclass(frozen=True)
class _Made:
    """A plan, all files that it loads, the devices that it is for, and the plan as it was measured before."""

    plan: LaunchPlan
    files: tuple[FileId, ...]
    devices: tuple[Device, ...]
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
        self._sources = sources or HubSources(environ)
        self._reader = reader or FactsReader()
        self._memory = MemoryPlanner()
        self._measuring = Measuring(Measurements(state_dir))
        self._headers_dir = headers_dir or headers_directory()
        self._devices = devices or DeviceCache()
        self._capabilities = capabilities
        self._environ = environ
        self._base_dir = base_dir

    def adopt(self, manifest: Manifest) -> None:
        """Take what a new manifest says that no single request holds: the names of secrets."""
        self.secret_names = manifest.secret_names

    async def fetch(self, request: ModelRequest, progress: Callable[[LoadProgress], None]) -> ResolvedSource:
        """The model's files on this machine; downloads what is missing of a hub source. Raises Refused."""
        found = await self._sources.resolve_source(request.source, progress)
        return await with_projector(self._sources, found, progress) if request.projector == "auto" else found

    async def plan(
        self, request: ModelRequest, replica: int, source: ResolvedSource | None = None
    ) -> LaunchPlan:
        """The plan for one replica. Raises Refused. Downloads nothing: `fetch` does, and gives `source`."""
        if source is None:
            source = await asyncio.to_thread(self._local, request)
        made = await self._make(request, replica, source)
        return made.recalled or made.plan

    async def measure(self, request: ModelRequest, replica: int, *, anew: bool = True) -> LaunchPlan:
        """As `plan`, with memory as the engine itself measures it, without loading anything. Raises Refused.

        Of a hub source that is not here only headers are fetched. Without `anew` a remembered answer will do.
        """
        remote: RemoteModel | None = None
        try:
            source = await asyncio.to_thread(self._local, request)
        except Refused:
            if request.source.repo is None:
                raise
            remote = await self._sources.fetch_headers(request.source, self._headers_dir)
            source = ahead.stand_in_source(remote)
        made = await self._make(request, replica, source, remote)
        known = made.recalled if remote is not None or not anew else None
        plan = known or await self._measuring.measure(made.plan, made.files, made.devices, anew=anew)
        return plan if remote is None else ahead.as_downloaded(plan, remote, self._sources.cache)

    async def _make(
        self, request: ModelRequest, replica: int, source: ResolvedSource, remote: RemoteModel | None = None
    ) -> _Made:
        binary = await asyncio.to_thread(find_binary, request.engine, self._environ, base_dir=self._base_dir)
        asking = {**without_secrets(self._environ, self.secret_names), **request.engine.env}
        caps, devices = await asyncio.gather(
            self._capabilities.get(binary, asking), self._usable(request, binary, asking)
        )

        def plan() -> _Made:
            model = self._reader.read(source.main, model_id=_model_id(source), template=request.template)
            facts = self._facts(request, source, model, binary, caps)
            made = self._memory.with_memory(
                plan_launch(request, replica, facts),
                model,
                devices,
                variants=ahead.smaller_variants(remote) if remote else (),
                projector_bytes=ahead.projector_bytes(remote)
                if remote and request.projector == "auto"
                else 0,
            )
            made = replace(made, reasons=(*source.notes, *made.reasons))
            recalled = self._measuring.recall(made, facts.file_ids, devices.devices)
            return _Made(made, facts.file_ids, devices.devices, recalled)

        return await asyncio.to_thread(plan)

    async def _usable(
        self, request: ModelRequest, binary: EngineBinary, asking: Mapping[str, str]
    ) -> DeviceList:
        """What the engine will see; it is not asked where only host memory counts."""
        if HOST_POOL in request.pool.devices:
            return DeviceList((host_memory(),))
        declared = {**request.engine.env, **request.env}
        servers = [declared.get(RPC_VARIABLE, ""), *values_of(request.extra_args, ("--rpc",))][-1]
        rpc = tuple(server for server in servers.split(",") if server)
        return await self._devices.get(binary, {**asking, **request.env}, rpc=rpc)

    def _local(self, request: ModelRequest) -> ResolvedSource:
        """The model's files as far as they are here. Blocking."""
        found = self._sources.require_local(request.source)
        return with_cached_projector(self._sources, found) if request.projector == "auto" else found

    def _facts(
        self,
        request: ModelRequest,
        source: ResolvedSource,
        model: ModelFacts,
        binary: EngineBinary,
        caps: Capabilities,
    ) -> LaunchFacts:
        """The model's files, checked, and where libraries lie. Blocking."""
        files = model.files
        projector = launch_projector(request.projector, source, model, self._reader)
        beside = [path for path, _ in request.adapters]
        for path in beside:
            if not path.is_file():
                raise Refused(_missing(path, "adapters"))
        named = _model_id(source)
        thinking, unmet = launch_reasoning(request.reasoning, model.template, named, model.header)
        beside = [*beside, projector.path] if projector.path else beside
        ids = [file_id(path) for path in (files.main, *files.shards, *beside)]
        return LaunchFacts(
            binary=binary,
            caps=caps,
            libraries=library_path(binary, self._environ),
            files=files,
            file_ids=tuple(identity for identity in ids if identity),
            environ=self._environ,
            secret_names=self.secret_names,
            context_train=model.header.context_length or 0,
            projector=projector.path,
            thinking=thinking,
            notes=(*projector.reasons, *unmet),
        )


def _model_id(source: ResolvedSource) -> str:
    """What a model calls itself, where people who named its files say more than its header."""
    return source.source.repo or source.main.stem


def _missing(path: Path, field: str) -> Failure:
    return Failure(
        Reason(
            "model_missing",
            f"The file {path} named by {field} does not exist.",
            f"Correct {field}, or put the file there.",
            "error",
            {"path": str(path), "field": field},
        )
    )
