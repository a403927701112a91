"""Checked tables to values: `Manifest` and one canonical, complete `ModelRequest` per model.

Called by `load.py` when nothing is wrong; refuses nothing itself. Mapping: 01 §1.1, canonical form: 07 §3.3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from framework.manifest.engine_args import normalised
from framework.manifest.files import FOLDER, Files
from framework.manifest.outside import Outside
from framework.manifest.schema_engines import EngineTable, PoolTable, SpeculationTable
from framework.manifest.schema_model import ModelTable
from framework.manifest.schema_server import AccessTable, ServerTable
from framework.manifest.spec_modes import canonical_mode
from framework.manifest.tables import Tables
from framework.manifest.texts import WrittenSource
from framework.values.engine import EngineRef
from framework.values.manifest import AccessKey, Manifest, ServerSettings
from framework.values.request import (
    LiveSettings,
    ModelRequest,
    ModelSource,
    PoolLimits,
    RestartPolicy,
    SpecPolicy,
    YieldWatch,
)

AUTO = "auto"
DEFAULT_NAME = "default"
NO_PROJECTOR, FOUND_PROJECTOR = "none", "auto"
ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class Policy:
    """`[speculation.NAME]`: what a process is started with, and what reaches one that runs."""

    spec: SpecPolicy
    yield_watch: YieldWatch


DEFAULT_POLICY = Policy(SpecPolicy(), LiveSettings().yield_watch)


@dataclass(frozen=True)
class Surroundings:
    """What models refer to, built already."""

    engines: Mapping[str, EngineRef]
    pools: Mapping[str, PoolLimits]
    speculation: Mapping[str, Policy]
    templates: Mapping[str, str]
    """Path as written to text."""


def build_manifest(
    base: Manifest,
    server: ServerTable,
    tables: Tables,
    models: Mapping[str, ModelTable],
    files: Files,
    outside: Outside,
) -> Manifest:
    """`base` with all that the tables say; `models` have what they inherit."""
    engines = {name: entry.table for name, entry in tables.engines.items()}
    engines.setdefault(DEFAULT_NAME, EngineTable())
    pools = {name: entry.table for name, entry in tables.pools.items()} or {DEFAULT_NAME: PoolTable()}
    around = Surroundings(
        engines={name: engine_ref(name, table, files) for name, table in engines.items()},
        pools={name: pool_limits(name, table) for name, table in pools.items()},
        speculation={name: policy(entry.table, files) for name, entry in tables.speculation.items()},
        templates=outside.templates,
    )
    return replace(
        base,
        server=replace(server_settings(server, files), tls=outside.tls),
        access=tuple(access_key(n, entry.table, outside.digests[n]) for n, entry in tables.access.items()),
        engines=around.engines,
        pools=around.pools,
        speculation={name: one.spec for name, one in around.speculation.items()},
        models={name: model_request(name, table, around, files) for name, table in models.items()},
        secret_names=outside.secret_names,
    )


def server_settings(table: ServerTable, files: Files) -> ServerSettings:
    """`[server]`."""
    return ServerSettings(
        listen=table.listen,
        state_dir=None if table.state_dir is None else files.absolute(table.state_dir),
        max_waiting=table.max_waiting,
        max_body_bytes=table.max_body,
        start_concurrency=table.start_concurrency,
        shutdown_s=table.shutdown,
        request_log=table.request_log,
        cors=tuple(dict.fromkeys(table.cors)),
        on_exit=table.on_exit,
    )


def access_key(name: str, table: AccessTable, digest: str) -> AccessKey:
    """`[access.NAME]`."""
    return AccessKey(
        name=name,
        key_sha256=digest,
        models=tuple(table.models),
        dashboard=table.dashboard,
        rate=table.rate,
        concurrency=table.concurrency,
        tokens=table.tokens,
    )


def engine_ref(name: str, table: EngineTable, files: Files) -> EngineRef:
    """`[engines.NAME]`: a path where the text looks like one, else a name on `PATH` (06 §2.2, §2.6)."""
    path: Path | None = None
    command: str | None = None
    if os.sep in table.binary:
        path = files.absolute(table.binary)
    elif table.binary != "auto":
        command = table.binary
    is_directory = path is not None and files.fault(table.binary) == FOLDER
    return EngineRef(
        name=name,
        kind=table.kind,
        path=None if is_directory else path,
        dir=path if is_directory else None,
        command=command,
        env=dict(table.environment),
        env_passthrough=tuple(table.environment_passthrough),
        api_key=table.api_key,
        datacenter_tuning=table.datacenter_tuning,
    )


def pool_limits(name: str, table: PoolTable) -> PoolLimits:
    """`[pools.NAME]`. The order of devices stays: it numbers remote ones."""
    return PoolLimits(
        name=name,
        devices=tuple(dict.fromkeys(table.devices)),
        fill=table.fill,
        budget_bytes=table.budget,
        reserve_bytes=table.reserve,
        evict=table.evict,
        offload=table.offload,
    )


def policy(table: SpeculationTable, files: Files) -> Policy:
    """`[speculation.NAME]`. A guard that is off has no numbers; a depth is a number or none (07 §3.3)."""
    guard, depth = table.loop_guard, table.depth
    spec = SpecPolicy(
        mode=canonical_mode(table.mode),
        depth=depth if isinstance(depth, int) else None,
        is_adaptive=depth == ADAPTIVE,
        controller=table.controller,
        loop_guard={} if guard.mode == "off" else guard.model_dump(),
        drafter=None if table.draft is None else _source(table.draft, files),
        ngram_match=table.ngram.match,
        ngram_min=table.ngram.min,
        ngram_max=table.ngram.max,
        min_head_params_b=float(table.min_head),
        allow_mla=table.allow_mla,
    )
    return Policy(spec, table.yield_watch)


def model_request(name: str, table: ModelTable, around: Surroundings, files: Files) -> ModelRequest:
    """`[models.NAME]` with what it inherits."""
    placement = table.placement
    drafting = DEFAULT_POLICY if table.speculation is None else around.speculation[table.speculation]
    only_pool = next(iter(around.pools.values()))
    return ModelRequest(
        id=name,
        source=_source(table.source, files),
        engine=around.engines[table.engine],
        pool=only_pool if table.pool is None else around.pools[table.pool],
        spec=drafting.spec,
        n_ctx=table.context or 0,
        slots=table.slots,
        cache_type=(table.kv_cache.k, table.kv_cache.v),
        batch=table.batch.logical,
        ubatch=table.batch.physical,
        memory_mode=placement.mode,
        devices=_pick(placement.devices),
        gpu_layers=max(placement.gpu_layers, -1),
        n_cpu_moe=placement.cpu_experts,
        tensor_parallel=placement.split == "tensor",
        tensor_split=tuple(placement.tensor_split),
        threads=table.threads if table.threads is not None and table.threads > 0 else None,
        flash_attn=table.flash_attention,
        swa_full=table.full_window_cache,
        projector=_projector(table.projector, files),
        adapters=tuple((files.canonical(one.path), float(one.scale)) for one in table.adapters),
        template=None if table.template is None else around.templates[table.template] or None,
        template_kwargs=table.template_arguments,
        reasoning=table.reasoning,
        extra_args=normalised(table.engine_args),
        env=table.environment,
        slot_save=table.slot_state.mode == "save",
        live=_live_settings(table, drafting.yield_watch),
    )


def _source(written: WrittenSource, files: Files) -> ModelSource:
    path = None if written.path is None else files.canonical(written.path)
    return ModelSource(path=path, repo=written.repo, variant=written.variant, file=written.file)


def _pick(written: Sequence[str]) -> tuple[str, ...] | None:
    """Canonical form of `placement.devices` (07 §3.3); none written means any of the pool."""
    return tuple(sorted(set(written) - {AUTO})) or None


def _projector(written: str | None, files: Files) -> Path | Literal["auto"] | None:
    if written is None or written == NO_PROJECTOR:
        return None
    return "auto" if written == FOUND_PROJECTOR else files.canonical(written)


def _live_settings(table: ModelTable, yield_watch: YieldWatch) -> LiveSettings:
    timeout, request, restart = table.timeout, table.request, table.restart
    return LiveSettings(
        aliases=tuple(table.aliases),
        display_name=table.display_name,
        load=table.load,
        idle_after_s=table.unload_after if table.load == "on-demand" else None,
        priority=table.priority,
        pin=table.pin,
        replicas=table.replicas,
        load_timeout_s=timeout.load,
        first_token_timeout_s=timeout.first_token,
        stall_timeout_s=timeout.stall,
        drain_timeout_s=timeout.drain,
        queue_timeout_s=timeout.queue,
        max_queue=table.max_queue,
        request_defaults=request.defaults,
        request_force=request.force,
        request_drop=tuple(request.drop),
        sampling_defaults=request.sampling_defaults,
        overflow_to=table.overflow_to,
        transcription=table.transcription,
        restart=RestartPolicy(
            max_crashes=restart.max_crashes,
            window_s=restart.window,
            stable_after_s=restart.stable_after,
            backoff_max_s=restart.max_backoff,
        ),
        rollback=table.rollback,
        slot_save_max_bytes=table.slot_state.max,
        slot_save_timeout_s=table.slot_state.timeout,
        yield_watch=yield_watch,
    )
