"""What the manifest asks of one model: canonical, complete, every default filled in (07 §0, 01 §1.1).

Each field carries, beside it, its manifest name and what a change of it does to a running instance. The
comparison (reconcile) and the manifest reference (docs/manifest.md) both read this declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from framework.values.engine import EngineRef

Effect = Literal["nothing", "live", "restart"]
LoadMode = Literal["at-start", "on-demand", "manual"]
YieldWatch = Literal["switch-off", "report", "off"]
GIB = 2**30


def setting(manifest: str, effect: Effect, default: Any = MISSING, *, factory: Any = MISSING) -> Any:
    """Declare a dataclass field together with its manifest name and the effect of changing it."""
    metadata = {"manifest": manifest, "effect": effect}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    if default is not MISSING:
        return field(default=default, metadata=metadata)
    return field(metadata=metadata)


@dataclass(frozen=True)
class ModelSource:
    """Where the weights come from: a local file, or (repo, variant or file) of a hub."""

    path: Path | None = None
    repo: str | None = None
    variant: str | None = None
    file: str | None = None


@dataclass(frozen=True)
class PoolLimits:
    """One `[pools.NAME]` table (01 §1.1). Bytes count per device."""

    name: str = "default"
    devices: tuple[str, ...] = ("auto",)
    """Names as the engine lists them, `rpc://host:port`, `auto` or `cpu`."""
    fill: float = 0.97
    """Share of each GPU that may be planned."""
    budget_bytes: int | None = None
    """What our own processes may hold of a device; None: all of it."""
    reserve_bytes: int = 0
    """Stays free besides."""
    evict: Literal["idle", "never"] = "idle"
    offload: Literal["allow", "forbid"] = "allow"
    """Whether layers or experts may lie in host memory."""


@dataclass(frozen=True)
class SpecPolicy:
    """One `[speculation.NAME]` table. `mode` is a canonical mode of 05 §2; lengths are tokens."""

    mode: str = "auto"
    depth: int | None = None
    """Drafted tokens per step; None leaves it to the mode (05 §8)."""
    is_adaptive: bool = False
    """The engine adapts the depth itself; only the native one can."""
    controller: Literal["profit", "fringe"] = "profit"
    loop_guard: Mapping[str, Any] = field(default_factory=dict)
    """Mode and numbers of the guard against loops; empty is off. Only the native engine has one."""
    drafter: ModelSource | None = None
    """A separate model that drafts."""
    ngram_match: int = 24
    ngram_min: int = 48
    ngram_max: int = 64
    min_head_params_b: float = 3.0
    """Billions of parameters below which `auto` leaves an embedded head alone."""
    allow_mla: bool = False
    """Whether `auto` uses an embedded head of a model with latent attention."""


@dataclass(frozen=True)
class RestartPolicy:
    """How often and how fast a crashed instance is started again (07 §9.4)."""

    max_crashes: int = 5
    window_s: float = 600.0
    stable_after_s: float = 300.0
    backoff_max_s: float = 60.0


@dataclass(frozen=True)
class LiveSettings:
    """Settings that reach running instances at once; no process is touched."""

    aliases: tuple[str, ...] = setting("aliases", "live", ())
    display_name: str | None = setting("display_name", "live", None)
    load: LoadMode = setting("load", "live", "on-demand")
    idle_after_s: float | None = setting("unload_after", "live", 600.0)
    priority: int = setting("priority", "live", 0)
    pin: bool = setting("pin", "live", False)
    replicas: int = setting("replicas", "live", 1)
    load_timeout_s: float = setting("timeout.load", "live", 600.0)
    first_token_timeout_s: float = setting("timeout.first_token", "live", 1200.0)
    stall_timeout_s: float = setting("timeout.stall", "live", 120.0)
    drain_timeout_s: float = setting("timeout.drain", "live", 300.0)
    queue_timeout_s: float = setting("timeout.queue", "live", 60.0)
    max_queue: int = setting("max_queue", "live", 16)
    request_defaults: Mapping[str, Any] = setting("request.defaults", "live", factory=dict)
    request_force: Mapping[str, Any] = setting("request.force", "live", factory=dict)
    request_drop: tuple[str, ...] = setting("request.drop", "live", ())
    sampling_defaults: Literal["paddock", "server"] = setting("request.sampling_defaults", "live", "paddock")
    overflow_to: str | None = setting("overflow_to", "live", None)
    """Name or alias of the model for prompts that are longer than the context of this one."""
    transcription: str | None = setting("transcription", "live", None)
    """Base address of another program that transcribes for this model."""
    restart: RestartPolicy = setting("restart", "live", RestartPolicy())
    rollback: bool = setting("rollback", "live", True)
    slot_save_max_bytes: int = setting("slot_state.max", "live", 10 * GIB)
    """Disk space for the saved prompt caches of one replica; 0 saves none."""
    slot_save_timeout_s: float = setting("slot_state.timeout", "live", 30.0)
    """For saving or restoring one slot."""
    yield_watch: YieldWatch = setting("speculation.yield_watch", "live", "switch-off")
    """What happens when drafting is measured to be slower than plain decoding (05 §11.7)."""


@dataclass(frozen=True)
class ModelRequest:
    """One `[models.NAME]` table with the engine, pool and policy it names, ready to be compared.

    `n_ctx` is tokens per instance, all slots together, 0 for automatic; `gpu_layers` -1 is automatic.
    `devices` is a pick inside the pool, sorted, by the pool's own names; None leaves it to the planner.
    """

    id: str = setting("NAME", "restart")
    source: ModelSource = setting("source", "restart")
    engine: EngineRef = setting("engine", "restart", EngineRef())
    pool: PoolLimits = setting("pool", "restart", PoolLimits())
    spec: SpecPolicy = setting("speculation", "restart", SpecPolicy())
    n_ctx: int = setting("context", "restart", 0)
    slots: int = setting("slots", "restart", 4)
    cache_type: tuple[str | None, str | None] = setting("kv_cache", "restart", (None, None))
    batch: int = setting("batch.logical", "restart", 2048)
    ubatch: int = setting("batch.physical", "restart", 512)
    memory_mode: Literal["auto", "manual"] = setting("placement.mode", "restart", "auto")
    devices: tuple[str, ...] | None = setting("placement.devices", "restart", None)
    gpu_layers: int = setting("placement.gpu_layers", "restart", -1)
    n_cpu_moe: int = setting("placement.cpu_experts", "restart", 0)
    tensor_parallel: bool = setting("placement.split", "restart", False)
    tensor_split: tuple[float, ...] = setting("placement.tensor_split", "restart", ())
    threads: int | None = setting("threads", "restart", None)
    flash_attn: Literal["on", "off", "auto"] = setting("flash_attention", "restart", "on")
    swa_full: bool = setting("full_window_cache", "restart", False)
    projector: Path | Literal["auto"] | None = setting("projector", "restart", None)
    adapters: tuple[tuple[Path, float], ...] = setting("adapters", "restart", ())
    template: str | None = setting("template", "restart", None)
    template_kwargs: Mapping[str, Any] = setting("template_arguments", "restart", factory=dict)
    reasoning: str = setting("reasoning", "restart", "auto")
    extra_args: tuple[str, ...] = setting("engine_args", "restart", ())
    env: Mapping[str, str] = setting("environment", "restart", factory=dict)
    slot_save: bool = setting("slot_state", "restart", True)
    """Whether prompt caches are carried over restarts (07 §11)."""
    live: LiveSettings = LiveSettings()


def same_launch(one: ModelRequest, other: ModelRequest) -> bool:
    """Whether two requests differ in nothing that a process was started with (07 §3.7).

    Limits of a pool are no part of that: they rule over plans to come.
    """
    return replace(one, live=other.live, pool=replace(other.pool, devices=one.pool.devices)) == other


def needs_another_start(old: ModelRequest, new: ModelRequest) -> bool:
    """Whether what is asked of the model itself changed: worth another try (07 §3.12, §4.7)."""
    return not same_launch(old, new) or old.live.load != new.live.load
