"""`[engines.NAME]`, `[pools.NAME]`, `[speculation.NAME]`: what serves, where, how it drafts (01 §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from framework.manifest.bad_value import BadValue
from framework.manifest.table import Table, option, sub_table
from framework.manifest.value_types import (
    Depth,
    DeviceName,
    Environment,
    EnvironmentPattern,
    Mode,
    SizeLimit,
    Source,
    Text,
    whole,
)
from framework.values.engine import EngineRef
from framework.values.loop_guard import contradiction
from framework.values.request import LiveSettings, PoolLimits, SpecPolicy, YieldWatch

RESTART = "restart"
LONGEST_NGRAM = 1024
NEXT_PLAN = "next plan"
POLICY = SpecPolicy()
LIMITS = PoolLimits()
LEAST_FILL = 0.1


class EngineTable(Table):
    """A program that serves models. `[engines.default]` exists without being written."""

    kind: Literal["llama-server", "native"] = option("llama-server", effect=RESTART)
    """Which program: any llama.cpp server, or this project's own engine."""
    binary: Text = option("auto", effect=RESTART)
    """`auto` (search), the path of the file or of a llama.cpp directory, or a name on `PATH`."""
    environment: Environment = option({}, effect=RESTART)
    """Variables for every process of this engine."""
    environment_passthrough: list[EnvironmentPattern] = option([], effect=RESTART)
    """Variables that processes may inherit although they would be dropped: names, or their starts followed
    by `*`."""
    system_rocm: Literal["auto", "never"] = option("never", effect=RESTART)
    """Whether the host's ROCm libraries come before those of the build."""
    datacenter_tuning: bool = option(EngineRef.datacenter_tuning, effect=RESTART)
    """Whether variables that suit datacenter cards are set, where a model is on such cards only."""
    api_key: bool = option(True, effect=RESTART)
    """Give every process a random key, so that nobody else on this machine can use it. For engines without
    keys: false."""


class PoolTable(Table):
    """A set of devices with limits. Without `[pools]` there is one, `default`, with all devices."""

    devices: Annotated[list[DeviceName], Field(min_length=1)] = option(
        list(LIMITS.devices), effect="restart if a device in use is taken away"
    )
    """`auto` (all GPUs of this machine, else the CPU), `cpu`, devices as the engine lists them (`CUDA0`),
    UUIDs of GPUs (`GPU-...`), or servers of llama.cpp's RPC backend (`rpc://host:port`)."""
    fill: Annotated[float, Field(ge=LEAST_FILL, le=1.0)] = option(LIMITS.fill, effect=NEXT_PLAN)
    """Share of each GPU, or of the budget for it, that may be planned."""
    budget: SizeLimit | None = option(LIMITS.budget_bytes, effect=NEXT_PLAN)
    """What models of the pool may hold of each device together; `fill` and `reserve` are taken off it. Pages
    of model files in host memory count too. Absent: all of the device."""
    reserve: SizeLimit = option(LIMITS.reserve_bytes, written="0MiB", effect=NEXT_PLAN)
    """Memory that stays free on each device besides, or of the budget for it."""
    evict: Literal["idle", "never"] = option(LIMITS.evict, effect="live")
    """Whether idle models make room for others: the lowest priority first, then the least recently used."""
    offload: Literal["allow", "forbid"] = option(LIMITS.offload, effect=NEXT_PLAN)
    """Whether layers or experts may lie in host memory where GPUs are too small."""


class NgramTable(Table):
    """Lengths of drafts that repeat earlier text; `depth` is that of drafts by a model."""

    match: Annotated[int, whole(1, LONGEST_NGRAM)] = option(POLICY.ngram_match, effect=RESTART)
    """Tokens that must be equal before a draft is tried."""
    min: Annotated[int, whole(1, LONGEST_NGRAM)] = option(POLICY.ngram_min, effect=RESTART)
    """Shortest draft, tokens."""
    max: Annotated[int, whole(1, LONGEST_NGRAM)] = option(POLICY.ngram_max, effect=RESTART)
    """Longest draft, tokens."""

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> Self:
        if self.min > self.max:
            found = f"{self._told('min')} and {self._told('max')}"
            raise BadValue("ngram_lengths", "lengths with min <= max (write both)", found=found).as_pydantic()
        return self

    def _told(self, name: Literal["min", "max"]) -> str:
        by_default = "" if name in self.model_fields_set else " by default"
        return f"{name} {getattr(self, name)}{by_default}"


class LoopGuardTable(Table):
    """What happens when reasoning repeats itself; lengths are tokens."""

    inherits: ClassVar[bool] = False
    short_form: ClassVar[Mapping[str, Any]] = {"enum": ["off", "stop", "force-close"]}

    mode: Literal["off", "stop", "force-close"] = option("off", effect=RESTART)
    """Nothing, end the answer, or end the reasoning."""
    min_reasoning_tokens: Annotated[int, whole(1, 1_000_000)] = option(512, effect=RESTART)
    """Reasoning before the guard looks."""
    window_tokens: Annotated[int, whole(1, 1_000_000)] = option(384, effect=RESTART)
    """Tail that is looked at."""
    max_period: Annotated[int, whole(1, 1_000_000)] = option(96, effect=RESTART)
    """Longest repeated piece."""
    min_repeated_coverage: Annotated[int, whole(1, 1_000_000)] = option(192, effect=RESTART)
    """Repeated tokens that count as a loop."""
    check_interval: Annotated[int, whole(1, 1_000_000)] = option(32, effect=RESTART)
    """Tokens between two looks."""
    interventions_max: Annotated[int, whole(1, 1000)] = option(1, effect=RESTART)
    """Interventions per answer."""

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        problem = contradiction(self.model_dump())
        if problem is not None:
            must_be = f"numbers with {problem.name} {problem.rule} {problem.other} (write both)"
            found = f"{self._told(problem.name)} and {self._told(problem.other)}"
            raise BadValue("loop_guard_numbers", must_be, found=found).as_pydantic()
        return self

    def _told(self, name: str) -> str:
        by_default = "" if name in self.model_fields_set else " by default"
        return f"{name} {getattr(self, name)}{by_default}"


class SpeculationTable(Table):
    """A policy for drafting tokens ahead. A model without one has mode `auto`."""

    mode: Mode = option("auto", effect=RESTART)
    """How tokens are drafted. `auto`, also written `default`, takes what the model and the engine have, `off`
    nothing. `ngram` and `ngram-simple` repeat earlier text; `mtp` uses the model's own prediction head, or a
    drafter made for it; `mtp+ngram` tries earlier text first; `draft`, `eagle3` and `dflash` need `draft`,
    and come to n-grams without it."""
    draft: Source | None = option(None, effect=RESTART)
    """The separate model that drafts, a path or a hub source as in `models.NAME.source`; for all modes but
    `off`, `ngram` and `ngram-simple`. It must have the model's vocabulary. Its caches are f16 unless the
    model's `engine_args` say otherwise, as in `["-ctkd", "q8_0", "-ctvd", "q8_0"]`; either is planned."""
    depth: Depth = option("default", effect=RESTART)
    """Tokens that a head or a separate model drafts per step. `default`: 2 on a GPU, else 3, for `mtp`; the
    engine's own for other models. `adaptive`: the native engine decides, others take the default."""
    controller: Literal["profit", "fringe"] = option(POLICY.controller, effect=RESTART)
    """How an adaptive depth is found; native engine only."""
    loop_guard: LoopGuardTable = sub_table(LoopGuardTable)
    """Watches reasoning for loops; native engine only."""
    ngram: NgramTable = sub_table(NgramTable)
    """Lengths for mode `ngram`; long ones, so that drafts are right more often than not."""
    min_head: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] = option(
        POLICY.min_head_params_b, effect=RESTART
    )
    """Billions of parameters below which `auto` leaves an embedded head unused."""
    allow_mla: bool = option(POLICY.allow_mla, effect=RESTART)
    """Whether `auto` uses an embedded head on models with latent attention."""
    yield_watch: YieldWatch = option(LiveSettings().yield_watch, effect="live")
    """What happens when drafting was measured to be slower than none for 10 minutes: the instance is replaced
    by one without drafting at a quiet moment, or only a reason is given, or nobody looks."""
