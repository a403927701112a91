"""Find out what a launch depends on, off the event loop, and make its plan (06 §1.2, §2.7).

Called by replicas before each start and by the `plan` commands, so that both show the same plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from framework.engines.child_env import without_secrets
from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path
from framework.engines.probe import CapabilityCache
from framework.models.file_set import check_model_file
from framework.models.gguf_header import read_header
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import HubSources
from framework.planning.launch import LaunchFacts, plan_launch
from framework.runtime.identity import file_id
from framework.values.engine import Capabilities, EngineBinary
from framework.values.instance import LoadProgress
from framework.values.manifest import Manifest
from framework.values.plan import LaunchPlan
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest


class FactPlanner:
    """Plans launches from what is on this machine now."""

    def __init__(
        self,
        capabilities: CapabilityCache,
        environ: Mapping[str, str],
        *,
        base_dir: Path,
        sources: HubSources | None = None,
    ) -> None:
        self.secret_names: tuple[str, ...] = ()
        self._sources = sources or HubSources(environ)
        self._capabilities = capabilities
        self._environ = environ
        self._base_dir = base_dir

    def adopt(self, manifest: Manifest) -> None:
        """Take what a new manifest says that no single request holds: the names of secrets."""
        self.secret_names = manifest.secret_names

    async def fetch(self, request: ModelRequest, progress: Callable[[LoadProgress], None]) -> ResolvedSource:
        """The model's files on this machine; downloads what is missing of a hub source. Raises Refused."""
        return await self._sources.resolve_source(request.source, progress)

    async def plan(
        self, request: ModelRequest, replica: int, source: ResolvedSource | None = None
    ) -> LaunchPlan:
        """The plan for one replica. Raises Refused. Downloads nothing: `fetch` does, and gives `source`."""
        if source is None:
            source = await asyncio.to_thread(self._sources.require_local, request.source)
        binary = await asyncio.to_thread(find_binary, request.engine, self._environ, base_dir=self._base_dir)
        asking = {**without_secrets(self._environ, self.secret_names), **request.engine.env}
        caps = await self._capabilities.get(binary, asking)
        facts = await asyncio.to_thread(self._facts, request, source.main, binary, caps)
        plan = plan_launch(request, replica, facts)
        return replace(plan, reasons=(*source.notes, *plan.reasons))

    def _facts(
        self, request: ModelRequest, main: Path, binary: EngineBinary, caps: Capabilities
    ) -> LaunchFacts:
        """The model's files, checked, and where libraries lie. Blocking."""
        files = check_model_file(main)
        beside = [(request.projector, "projector"), *((path, "adapters") for path, _ in request.adapters)]
        for path, field in beside:
            if path is not None and not path.is_file():
                raise Refused(_missing(path, field))
        ids = [file_id(path) for path in (files.main, *files.shards, *(path for path, _ in beside if path))]
        return LaunchFacts(
            binary=binary,
            caps=caps,
            libraries=library_path(binary, self._environ),
            files=files,
            file_ids=tuple(identity for identity in ids if identity),
            environ=self._environ,
            secret_names=self.secret_names,
            context_train=read_header(files.main).header.context_length or 0,
        )


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
