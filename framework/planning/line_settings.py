"""What of a command line and its environment decides the memory of the process (03 §2). Pure.

Read from the finished line, the user's own flags included, so that memory is planned for what the engine will
really be told. Called by planning.launch_memory and by whatever measures the same launch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framework.engines.args import (
    FALSE_WORDS,
    FLASH_FLAGS,
    K_TYPE_FLAGS,
    TRUE_WORDS,
    V_TYPE_FLAGS,
    flash_attention,
)
from framework.planning.line_drafting import (
    COPIES_FLAG,
    draft_plan,
    drafter_file,
    drafter_naming,
    longest_draft,
)
from framework.planning.line_reader import VARIABLE, WHOLE_NUMBER, LineReader
from framework.planning.memory.settings import (
    BATCH,
    DRAFT_DEPTH,
    MICRO_BATCH,
    CacheSettings,
    DraftPlan,
    HostSettings,
    Offload,
)
from framework.values.engine import Capabilities
from framework.values.plan import LaunchPlan

UNSIGNED_32 = 2**32
MIB = 1 << 20
# The engine's own, where --fit-ctx and --fit-target are not on the line.
LEAST_FITTED_CONTEXT = 4096
FIT_MARGIN_BYTES = 1024 * MIB
# All layers, in the words of --gpu-layers.
ALL_LAYERS = ("all", "-2")
NO_DEVICE = "none"
# Flags whose effect on memory no rule here knows.
UNPLANNED_FLAGS = ("-ot", "--override-tensor")
UNPLANNED_SPLITS = frozenset({"tensor"})
BY_ROWS = "row"
CACHE_FLAGS = ("-cram", "--cache-ram")
CHECKPOINT_FLAGS = ("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints")
ENGINE_HOST = HostSettings()
"""As the engine has it where the line says nothing."""
# Builds from before the flags were renamed draft deeper unless told otherwise (05 §7.9).
LEGACY_DEPTH_FLAG, LEGACY_DEPTH = "--draft-max", 16
EVERY_LAYER = 1 << 16
"""More than any model has: as a number of layers whose experts stay in host memory it means all."""


@dataclass(frozen=True)
class LineSettings:
    """One launch, as far as memory depends on it."""

    cache: CacheSettings
    """`n_ctx` 0 is the trained context."""
    offload: Offload
    host: HostSettings
    may_shorten: bool
    """The engine's fit step may shorten the context, down to `least_context`."""
    may_move: bool
    """The engine's fit step may move layers and experts to host memory."""
    least_context: int = LEAST_FITTED_CONTEXT
    margin_bytes: int = FIT_MARGIN_BYTES
    """What the fit step leaves free of each device."""
    devices: tuple[str, ...] | None = None
    """Names on the line; empty for host memory alone, None where it names none."""
    servers: tuple[str, ...] = ()
    """`host:port` of remote servers that the engine connects to, in the order in which it counts them."""
    projector: str | None = None
    draft: DraftPlan | None = None
    """An embedded head or a separate drafter, on the line with what it takes."""
    drafter: str | None = None
    """File of a separate drafter; None also for one that the engine gets from a hub."""
    drafter_naming: str = ""
    """The flag or variable that names the drafter, with its value; empty for none."""
    row_main: int | None = None
    """Weights are cut by rows, and this GPU does the rest; None where layers are divided."""
    unplanned: str | None = None
    """A flag whose effect on memory is not known, so that nothing can be said."""


# Flags of a user who says himself where things go, each with the name of its variable.
DEVICE_FLAGS = {"-dev": "DEVICE", "--device": "DEVICE", "--rpc": "RPC"}
PLACEMENT_FLAGS: Mapping[str, str] = {
    **DEVICE_FLAGS,
    **dict.fromkeys(("-ngl", "--gpu-layers", "--n-gpu-layers"), "N_GPU_LAYERS"),
    **dict.fromkeys(("-ts", "--tensor-split"), "TENSOR_SPLIT"),
    **dict.fromkeys(("-sm", "--split-mode"), "SPLIT_MODE"),
    **dict.fromkeys(("-mg", "--main-gpu"), "MAIN_GPU"),
    **dict.fromkeys(("-fit", "--fit"), "FIT"),
    **dict.fromkeys(("-fitt", "--fit-target"), "FIT_TARGET"),
    **dict.fromkeys(("-fitc", "--fit-ctx"), "FIT_CTX"),
    **dict.fromkeys(("-ncmoe", "--n-cpu-moe"), "N_CPU_MOE"),
    **dict.fromkeys(("-cmoe", "--cpu-moe"), "CPU_MOE"),
}
SLOT_FLAGS = {"-np": "N_PARALLEL", "--parallel": "N_PARALLEL"}
PROMPT_CACHE_FLAGS = dict.fromkeys(CACHE_FLAGS, "CACHE_RAM")


def owns_placement(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether the user's own arguments or variables say where things go."""
    return _owns(PLACEMENT_FLAGS, args, env)


def names_devices(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether they name devices or remote servers."""
    return _owns(DEVICE_FLAGS, args, env)


def owns_slots(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether they say how many slots there are."""
    return _owns(SLOT_FLAGS, args, env)


def owns_prompt_cache(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether they limit the prompt cache."""
    return _owns(PROMPT_CACHE_FLAGS, args, env)


def _owns(flags: Mapping[str, str], args: Sequence[str], env: Mapping[str, str]) -> bool:
    return any(token in flags for token in args) or any(VARIABLE + name in env for name in flags.values())


def line_of(plan: LaunchPlan) -> LineSettings:
    """The settings of the line of a plan, with the defaults of its engine."""
    is_legacy = plan.caps.depth_flag == LEGACY_DEPTH_FLAG
    usual_depth = LEGACY_DEPTH if is_legacy else DRAFT_DEPTH
    return read_line(
        plan.argv,
        plan.env,
        usual_depth=usual_depth,
        usual_host=_usual_host(plan.caps),
        keeps_copies=plan.caps.has(COPIES_FLAG),
    )


def read_line(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    usual_depth: int = DRAFT_DEPTH,
    usual_host: HostSettings = ENGINE_HOST,
    keeps_copies: bool = False,
) -> LineSettings:
    """The settings of a line. A variable counts only where no flag says the same.

    `usual_depth` is what the engine drafts at once where the line does not say, `usual_host` what it keeps in
    host memory. With `keeps_copies` it keeps copies of running states for the drafts of a separate model.
    """
    line = LineReader(argv, env)
    context = line.number(("-c", "--ctx-size"), "CTX_SIZE")
    slots = max(1, line.number(("-np", "--parallel"), "N_PARALLEL") or 1)
    fits = line.value(("-fit", "--fit"), "FIT") in TRUE_WORDS
    offload, fixed = _offload(line)
    by_rows = _split_mode(line) == BY_ROWS
    least = line.number(("-fitc", "--fit-ctx"), "FIT_CTX")
    return LineSettings(
        cache=_cache(line, max(0, context or 0), slots, usual_depth),
        offload=offload,
        host=_host(line, usual_host),
        may_shorten=fits and context is None and not by_rows,
        may_move=fits and not fixed and not by_rows,
        margin_bytes=_margin_bytes(line),
        least_context=LEAST_FITTED_CONTEXT if least is None else max(1, least),
        devices=_devices(line),
        servers=tuple(name for name in (line.value(("--rpc",), "RPC") or "").split(",") if name),
        projector=line.value(("-mm", "--mmproj"), "MMPROJ"),
        draft=draft_plan(line, usual_depth, keeps_copies=keeps_copies),
        drafter=drafter_file(line),
        drafter_naming=drafter_naming(line),
        row_main=max(0, line.number(("-mg", "--main-gpu"), "MAIN_GPU") or 0) if by_rows else None,
        unplanned=_unplanned(line),
    )


def _cache(line: LineReader, context: int, slots: int, usual_depth: int) -> CacheSettings:
    batch, ubatch = _batch(line)
    whole_window = line.has("--swa-full") or line.variable("SWA_FULL") in TRUE_WORDS
    embedding = ("--embedding", "--embeddings", "--rerank", "--reranking")
    by_variable = {line.variable("EMBEDDINGS"), line.variable("RERANKING")} & TRUE_WORDS
    return CacheSettings(
        n_ctx=context,
        slots=slots,
        key_type=_cache_type(line.value(K_TYPE_FLAGS, "CACHE_TYPE_K")),
        value_type=_cache_type(line.value(V_TYPE_FLAGS, "CACHE_TYPE_V")),
        unified=line.switch(
            ("-kvu", "--kv-unified"), ("-no-kvu", "--no-kv-unified"), "KV_UNIFIED", default=False
        ),
        swa_full=whole_window,
        batch=batch,
        ubatch=ubatch,
        flash_attention=_flash(line),
        kv_on_gpu=line.switch(("-kvo", "--kv-offload"), ("-nkvo", "--no-kv-offload"), "KV_OFFLOAD"),
        drafted=longest_draft(line, usual_depth),
        embeddings=line.has(*embedding) or bool(by_variable),
        repack=line.switch(("--repack",), ("-nr", "--no-repack"), "REPACK"),
    )


def _flash(line: LineReader) -> bool:
    """`auto` comes to on wherever the engine was seen."""
    default = "on" if line.has(*FLASH_FLAGS) else line.variable("FLASH_ATTN")
    word = flash_attention(line.argv, default)
    return word not in FALSE_WORDS


def _batch(line: LineReader) -> tuple[int, int]:
    """03 §2.9: unsigned, and a micro-batch of 0 is the whole batch."""
    batch = line.number(("-b", "--batch-size"), "BATCH")
    ubatch = line.number(("-ub", "--ubatch-size"), "UBATCH")
    whole = BATCH if batch is None else batch % UNSIGNED_32
    micro = MICRO_BATCH if ubatch is None else ubatch % UNSIGNED_32
    return whole, min(micro or whole, whole)


def _cache_type(text: str | None) -> str:
    return (text or "").strip().lower() or "f16"


def _offload(line: LineReader) -> tuple[Offload, bool]:
    """Layers, experts and shares on the line, and whether any of them binds the fit step."""
    word = line.value(("-ngl", "--gpu-layers", "--n-gpu-layers"), "N_GPU_LAYERS") or "auto"
    layers = int(word) if WHOLE_NUMBER.fullmatch(word) else -1
    is_fixed = layers >= 0 or word in ALL_LAYERS
    experts = line.number(("-ncmoe", "--n-cpu-moe"), "N_CPU_MOE") or 0
    if line.has("-cmoe", "--cpu-moe") or line.variable("CPU_MOE") in TRUE_WORDS:
        experts = EVERY_LAYER
    split = _shares(line.value(("-ts", "--tensor-split"), "TENSOR_SPLIT") or "")
    offload = Offload(layers if layers >= 0 else None, max(0, experts), split)
    return offload, bool(is_fixed or experts or split)


def _margin_bytes(line: LineReader) -> int:
    """The largest of the margins, where there is one for each device."""
    text = line.value(("-fitt", "--fit-target"), "FIT_TARGET") or ""
    margins = [int(part) * MIB for part in text.split(",") if WHOLE_NUMBER.fullmatch(part)]
    return max(0, *margins) if margins else FIT_MARGIN_BYTES


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = [float(part) for part in re.split(r"[,/]", text) if part.strip()]
    except ValueError:
        return ()
    return tuple(share if 0 < share < UNSIGNED_32 else 0.0 for share in shares)


def _usual_host(caps: Capabilities) -> HostSettings:
    """What a build keeps in host memory by itself: without the flag of a limit, nothing of the kind."""
    if not caps.conclusive or caps.is_partial:
        return ENGINE_HOST
    has_cache, has_checkpoints = (any(map(caps.has, flags)) for flags in (CACHE_FLAGS, CHECKPOINT_FLAGS))
    return HostSettings(
        ENGINE_HOST.cache_ram_bytes if has_cache else 0, ENGINE_HOST.checkpoints if has_checkpoints else 0
    )


def _host(line: LineReader, usual: HostSettings) -> HostSettings:
    """A prompt cache without a limit (-1) is planned as the usual one: nothing says where it ends."""
    cache_mib = line.number(CACHE_FLAGS, "CACHE_RAM")
    checkpoints = line.number(CHECKPOINT_FLAGS, "CTX_CHECKPOINTS")
    maps = line.switch(("--mmap",), ("--no-mmap",), "MMAP")
    direct = line.switch(("-dio", "--direct-io"), ("-ndio", "--no-direct-io"), "DIO", default=False)
    locked = line.has("--mlock") or line.variable("MLOCK") in TRUE_WORDS
    return HostSettings(
        cache_ram_bytes=usual.cache_ram_bytes if cache_mib is None or cache_mib < 0 else cache_mib * MIB,
        checkpoints=usual.checkpoints if checkpoints is None else max(0, checkpoints),
        mapped=maps and not direct and not locked,
    )


def _devices(line: LineReader) -> tuple[str, ...] | None:
    text = line.value(("-dev", "--device"), "DEVICE")
    if text is None:
        return None
    return tuple(name for name in text.split(",") if name and name.lower() != NO_DEVICE)


def _unplanned(line: LineReader) -> str | None:
    if line.has(*UNPLANNED_FLAGS) or line.variable("OVERRIDE_TENSOR"):
        return "--override-tensor"
    split = _split_mode(line)
    return f"--split-mode {split}" if split in UNPLANNED_SPLITS else None


def _split_mode(line: LineReader) -> str | None:
    return line.value(("-sm", "--split-mode"), "SPLIT_MODE")
