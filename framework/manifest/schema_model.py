"""`[models.NAME]` and `[defaults]`: everything that can be asked of a model (01 §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from framework.manifest.number_values import LARGEST_BATCH, MOST_REPLICAS, MOST_SLOTS
from framework.manifest.table import Table, option, sub_table
from framework.manifest.texts import WrittenSource
from framework.manifest.value_types import (
    Context,
    DeviceName,
    Duration,
    DurationOrZero,
    Environment,
    JsonTable,
    KvType,
    ModelName,
    Name,
    PolicyName,
    RequestFields,
    SizeLimit,
    Source,
    Template,
    TensorSplit,
    Text,
    Threads,
    UnloadAfter,
    WebAddress,
    whole,
)
from framework.values.request import LiveSettings, ModelRequest, RestartPolicy

MOST_LAYERS = 100_000
LIVE = LiveSettings()
RESTARTS = RestartPolicy()
Reasoning = Literal["auto", "on", "off", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


class KvCacheTable(Table):
    """Element types of the key and value cache."""

    inherits: ClassVar[bool] = False
    short_form: ClassVar[Mapping[str, Any]] = {"type": "string"}

    k: KvType = option(None)
    """Type of the keys. Absent: the engine's, f16."""
    v: KvType = option(None)
    """Type of the values; a quantised one needs flash attention."""

    @model_validator(mode="before")
    @classmethod
    def _one_type_for_both(cls, value: Any) -> Any:
        return {"k": value, "v": value} if isinstance(value, str) else value


class RequestTable(Table):
    """Changes to what clients send."""

    defaults: RequestFields = option({})
    """Fields for requests that do not set them."""
    force: RequestFields = option({})
    """Fields that are set whatever the request says."""
    drop: list[Text] = option([])
    """Fields that are taken out."""
    sampling_defaults: Literal["paddock", "server"] = option(LIVE.sampling_defaults)
    """Sampling of requests that name none: the endpoint's own values, or the engine's."""


class TimeoutTable(Table):
    """How long things may take."""

    load: Duration = option(LIVE.load_timeout_s, written="10m")
    """From the start of the process to ready. Large models on cold disks need minutes. A request waits for a
    model that is not loaded, memory included, at most so long."""
    first_token: Duration = option(LIVE.first_token_timeout_s, written="20m")
    """From the request to the first token; long prompts on slow machines need it."""
    stall: Duration = option(LIVE.stall_timeout_s, written="2m")
    """Between two tokens."""
    drain: DurationOrZero = option(LIVE.drain_timeout_s, written="5m")
    """For requests that are being served when the model is to stop or to be replaced."""
    queue: DurationOrZero = option(LIVE.queue_timeout_s, written="1m")
    """For a request while the model is replaced, or waits for its next start. Half of it is when a model that
    waits for memory gets its turn before requests for models that are loaded."""


class BatchTable(Table):
    """Tokens that are processed together."""

    logical: Annotated[int, whole(1, LARGEST_BATCH)] = option(ModelRequest.batch)
    """Prompt tokens per step of a request; a smaller number lets cancelled requests end sooner."""
    physical: Annotated[int, whole(1, LARGEST_BATCH)] = option(ModelRequest.ubatch)
    """Tokens per computation; more is faster and takes more memory. At most `logical`."""


class RestartTable(Table):
    """How a crashed instance is started again."""

    max_crashes: Annotated[int, whole(0, 1000)] = option(RESTARTS.max_crashes)
    """Crashes within `window` after which it stays down."""
    window: Duration = option(RESTARTS.window_s, written="10m")
    """Time over which crashes are counted."""
    stable_after: Duration = option(RESTARTS.stable_after_s, written="5m")
    """Uptime after which earlier crashes are forgotten."""
    max_backoff: Duration = option(RESTARTS.backoff_max_s, written="1m")
    """Longest wait between two starts."""


class PlacementTable(Table):
    """Where layers go. Absent: automatic."""

    mode: Literal["auto", "manual"] = option(ModelRequest.memory_mode)
    """`manual` takes the numbers below as they are."""
    devices: list[DeviceName] = option([])
    """Devices of the pool that this model may use, by the names that the pool has for them. Empty: all."""
    gpu_layers: Annotated[int, whole(-MOST_LAYERS, MOST_LAYERS)] = option(ModelRequest.gpu_layers)
    """Layers on GPUs; a negative number lets the engine decide. Needs mode `manual`."""
    cpu_experts: Annotated[int, whole(0, MOST_LAYERS)] = option(ModelRequest.n_cpu_moe)
    """Layers whose experts stay in host memory. Needs mode `manual`."""
    split: Literal["layer", "tensor"] = option("layer")
    """How a model is divided over several devices: whole layers each, or a part of every layer, which is
    faster where devices are joined closely. Where `tensor` cannot be had it is `layer`, with a reason."""
    tensor_split: TensorSplit = option([])
    """Shares of the devices, in their order. Needs mode `manual`."""


class AdapterTable(Table):
    """A LoRA adapter."""

    required: ClassVar[tuple[str, ...]] = ("path",)

    path: Text = option("")
    """GGUF file of the adapter."""
    scale: Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)] = option(1.0)
    """Strength."""


class SlotStateTable(Table):
    """Prompt caches that outlive the process."""

    inherits: ClassVar[bool] = False
    short_form: ClassVar[Mapping[str, Any]] = {"enum": ["save", "off"]}

    mode: Literal["save", "off"] = option("save")
    """Whether they are kept."""
    max: SizeLimit = option(LIVE.slot_save_max_bytes, written="10GiB")
    """Disk space for those of one replica. What comes to more is not kept; `"0MiB"` keeps nothing."""
    timeout: Duration = option(LIVE.slot_save_timeout_s, written="30s")
    """Time for saving or restoring one slot."""

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) else value


NO_SOURCE = WrittenSource()
"""Stands for a source that is missing or wrong; nothing is built from it."""
SAVED_SLOTS = SlotStateTable()


class DefaultsTable(Table):
    """What every model inherits; a key in the model's own table wins."""

    engine: Name = option("default")
    """Name of the `[engines.NAME]` table."""
    pool: Name | None = option(None)
    """Name of the `[pools.NAME]` table. May be left out while there is one pool."""
    speculation: PolicyName | None = option(None)
    """Name of the `[speculation.NAME]` table. Absent: mode `auto`."""
    context: Context = option(None, written="auto")
    """Tokens per instance, all slots together. `auto`: what the model was trained for, or what fits."""
    slots: Annotated[int, whole(1, MOST_SLOTS)] = option(ModelRequest.slots)
    """Requests that an instance serves at once; they share its context."""
    kv_cache: KvCacheTable = sub_table(KvCacheTable)
    """Type of the key and value cache, or one each: `{ k = "q8_0", v = "f16" }`. Smaller types fit more
    context. Absent: f16."""
    batch: BatchTable = sub_table(BatchTable)
    """Tokens that are processed together."""
    flash_attention: Literal["on", "auto", "off"] = option(ModelRequest.flash_attn)
    """Attention without large intermediate buffers; a quantised value cache needs it."""
    full_window_cache: bool = option(ModelRequest.swa_full)
    """Keep the whole cache of models with a sliding window: prompts can be reused, at the cost of memory."""
    threads: Threads = option(ModelRequest.threads, written="auto")
    """CPU threads. `auto` (also 0 and -1): the engine's choice, physical cores."""
    projector: Text | None = option(None)
    """Path of the projector for images and audio. `auto`: the one that belongs to the model, from its folder
    or its repository; without one the model runs with text only. `none`, or absent: text only."""
    adapters: list[AdapterTable] = option([])
    """LoRA adapters."""
    template: Template | None = option(None)
    """Chat template instead of the model's own, as `file:PATH`."""
    template_arguments: JsonTable = option({})
    """Arguments for the chat template."""
    reasoning: Reasoning = option(ModelRequest.reasoning)
    """Whether a model with a switch for it reasons before it answers, and how much; `auto`: as suits it best.
    Requests may say otherwise, and `template_arguments` win."""
    load: Literal["at-start", "on-demand", "manual"] = option(LIVE.load)
    """When it is loaded: with `up`, at its first request, or by the command `load` only."""
    unload_after: UnloadAfter = option(LIVE.idle_after_s, written="10m")
    """Idle time after which an `on-demand` model is unloaded; `never` keeps it."""
    replicas: Annotated[int, whole(1, MOST_REPLICAS)] = option(LIVE.replicas)
    """Equal copies that share the requests."""
    priority: Annotated[int, whole(-1000, 1000)] = option(LIVE.priority)
    """Higher is started first, and never makes room for lower."""
    pin: bool = option(LIVE.pin)
    """Once loaded, never unloaded to make room for others."""
    max_queue: Annotated[int, whole(0, 100_000)] = option(LIVE.max_queue)
    """Requests that may wait for this model while it is not ready; further ones get 503 with `Retry-After`.
    Those that a ready model is sent do not count."""
    overflow_to: Name | None = option(None)
    """Model or alias that gets the prompts which are longer than this one's context, once; answers carry its
    name. Its own `overflow_to` is not followed. Absent: such prompts are refused with both lengths."""
    timeout: TimeoutTable = sub_table(TimeoutTable)
    """How long things may take."""
    request: RequestTable = sub_table(RequestTable)
    """Changes to what clients send."""
    restart: RestartTable = sub_table(RestartTable)
    """How a crashed instance is started again."""
    rollback: bool = option(LIVE.rollback)
    """Whether a replacement that fails brings the old instance back."""
    on_drift: Literal["report", "replace"] = option("report")
    """What happens when the file or the engine changes under a running model."""
    slot_state: SlotStateTable = option(SAVED_SLOTS, written="save")
    """Whether what an instance has read of its conversations is saved when it is unloaded or replaced, and
    given to the next one, so that they go on without being read again. The files hold conversations, and lie
    in the state directory for this user alone."""
    placement: PlacementTable = sub_table(PlacementTable)
    """Where layers go."""
    environment: Environment = option({})
    """Variables for the process, over those of the engine. One that never reaches it, such as
    `LLAMA_ARG_SPEC_TYPE`, is a warning that says what to write instead."""
    engine_args: list[Text] = option([])
    """Last resort: flags for the engine's command line, last on it. Flags that would break the setup are
    refused."""
    voice_format: Text | None = option(None)
    """How a voice is written into the prompt of a speech model."""
    transcription: WebAddress | None = option(None)
    """Base address of another program that transcribes recordings for this model, as OpenAI's route does:
    `http://127.0.0.1:9000`. The model itself is not loaded for them. Absent: the model hears itself, or such
    requests are refused."""


class ModelTable(DefaultsTable):
    """One model; the name of its table is the name that clients use."""

    required: ClassVar[tuple[str, ...]] = ("source",)

    source: Source = option(NO_SOURCE)
    """The weights: path of a GGUF file (of its first part, if it has several), relative to the manifest; or a
    quantisation or file of a hub, which the first start downloads into the hub's cache."""
    aliases: list[ModelName] = option([])
    """Further names for clients."""
    display_name: Text | None = option(None)
    """Name for people."""
