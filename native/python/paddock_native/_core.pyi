"""Written by tools/write_stub.py. Not for editing."""
# ruff: noqa: A002  (parameters are named as in the core)

import os
from collections.abc import Sequence
from typing import Final

class LoadError(RuntimeError):
    """A stage of loading that failed; `code` names it."""

    code: str

class DraftModelParams:
    """The separate drafter; what isn't set is as the target's."""

    def __init__(self) -> None: ...
    path: str
    n_gpu_layers: int
    devices: list[str]
    cache_type_k: str
    cache_type_v: str
    n_threads: int
    n_threads_batch: int

class NgramLengths:
    """Tokens of the pattern, tokens drafted, and hits that an entry needs."""

    def __init__(self) -> None: ...
    n: int
    m: int
    min_hits: int

class NgramModLengths:
    """Tokens of the pattern, least and most tokens drafted."""

    def __init__(self) -> None: ...
    match: int
    min: int
    max: int

class DepthParams:
    """How the depth of drafts is ruled."""

    def __init__(self) -> None: ...
    adaptive: bool
    controller: str
    fringe_min: float
    fringe_max: float
    fringe_window: int
    min_reach: int
    off_dwell: int
    probe_interval: int
    probe_fraction: float
    explore_interval: int
    profit_min: float
    raise_: float
    lower: float
    ewma: float
    min_samples: int
    warmup: int
    baseline_interval: int

class SpeculationParams:
    """What the command line says of drafting."""

    def __init__(self) -> None: ...
    types: list[str]
    model: DraftModelParams
    n_max: int
    n_min: int
    p_min: float
    branch_budget: int
    topk: int
    branch_seqs: int
    p_split: float
    draft_temperature: float
    verify: str
    reduced: str
    reduced_drafters: str
    grammar_blocks: bool
    rs_snapshots: int
    strict: bool
    simple: NgramLengths
    map_k: NgramLengths
    map_k4v: NgramLengths
    mod: NgramModLengths
    depth: DepthParams
    lookup_static: str
    lookup_dynamic: str

class SpeculationRequest:
    """What one request changes; None: as the server's."""

    def __init__(self) -> None: ...
    type: str | None
    n_max: int | None
    n_min: int | None
    p_min: float | None
    adaptive: bool | None
    controller: str | None

class LoopGuardParams:
    """When output that repeats itself is stopped; counts of tokens."""

    def __init__(self) -> None: ...
    mode: str
    min_reasoning_tokens: int
    window_tokens: int
    max_period: int
    min_repeated_coverage: int
    check_interval: int
    interventions_max: int

class VerifyCounts:
    """Tokens by how they were judged."""

    exact: Final[int]
    prob_accept: Final[int]
    reject: Final[int]
    no_prob: Final[int]
    bonus: Final[int]

class RollbackCounts:
    """Drafts by how memory was taken back."""

    none: Final[int]
    trim: Final[int]
    snapshot: Final[int]
    redecode: Final[int]
    refill: Final[int]

class ReducedReport:
    """How the latest draft was judged: by the k best tokens of its rows, or why not."""

    path: Final[str]
    reason: Final[str]
    view_reason: Final[str]
    k: Final[int]

class SpeculationReport:
    """What drafting did for one request."""

    types: Final[list[str]]
    active_type: Final[str]
    fallback_reason: Final[str]
    idle_reason: Final[str]
    adaptive: Final[bool]
    controller: Final[str]
    depth: Final[int]
    depth_base: Final[int]
    depth_state: Final[str]
    fringe: Final[float]
    score: Final[float]
    gain: Final[float]
    drafts: Final[int]
    drafted: Final[int]
    accepted: Final[int]
    drafted_by_position: Final[list[int]]
    accepted_by_position: Final[list[int]]
    verify_mode: Final[str]
    verify_counts: Final[VerifyCounts]
    reduced: Final[ReducedReport]
    tree_drafts: Final[int]
    tree_reason: Final[str]
    rollbacks: Final[RollbackCounts]
    suppressed: Final[bool]

class LoopGuardReport:
    """What the loop guard saw and did for one request."""

    mode: Final[str]
    triggered: Final[bool]
    action: Final[str]
    reason: Final[str]
    interventions: Final[int]
    reasoning_tokens: Final[int]
    visible_tokens: Final[int]

class SpeculationTotals:
    """Counts since the start; milliseconds of draft, verify, accept, other."""

    drafts: Final[int]
    drafted: Final[int]
    accepted: Final[int]
    drafted_by_position: Final[list[int]]
    accepted_by_position: Final[list[int]]
    verify_counts: Final[VerifyCounts]
    reduced: Final[dict[str, int]]
    tree_drafts: Final[int]
    rollbacks: Final[RollbackCounts]
    phase_ms: Final[list[float]]
    controller_changes: Final[list[list[int]]]
    baseline_probes: Final[int]
    suppressions: Final[int]
    loop_guard_actions: Final[list[list[int]]]

class DroppedType:
    """A drafter that was asked for and does not run."""

    type: Final[str]
    reason: Final[str]

class SpeculationFacts:
    """Drafters of a loaded model."""

    types: Final[list[str]]
    dropped: Final[list[DroppedType]]
    fallback_reason: Final[str]
    reduced_path: Final[str]
    reduced_reason: Final[str]
    has_trees: Final[bool]
    tree_reason: Final[str]

class LoraParams:
    """An adapter file and its scale."""

    def __init__(self, path: str | os.PathLike[str], scale: float = 1.0) -> None: ...
    path: str
    scale: float

class TensorPlacement:
    """Tensors by a regular expression over their names, and their buffer type or device."""

    def __init__(self, pattern: str, buffer: str) -> None: ...
    pattern: str
    buffer: str

class MetadataOverride:
    """A value that replaces the model file's; type: int, float, bool or str."""

    def __init__(self, key: str, type: str, value: str) -> None: ...
    key: str
    type: str
    value: str

class EngineParams:
    """What an engine is started with."""

    def __init__(self) -> None: ...
    model_path: str
    model_name: str
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_parallel: int
    kv_unified: bool
    cont_batching: bool
    context_shift: bool
    swa_full: bool
    flash_attention: int
    cache_type_k: str
    cache_type_v: str
    pooling: str
    attention: str
    rope_scaling: str
    rope_freq_base: float
    rope_freq_scale: float
    yarn_ext_factor: float
    yarn_attn_factor: float
    yarn_beta_fast: float
    yarn_beta_slow: float
    yarn_orig_ctx: int
    embeddings: bool
    reranking: bool
    n_threads: int
    n_threads_batch: int
    n_gpu_layers: int
    layers_given: bool
    context_given: bool
    split_mode: str
    tensor_split: list[float]
    main_gpu: int
    devices: list[str]
    tensor_placements: list[TensorPlacement]
    metadata_overrides: list[MetadataOverride]
    offload_kqv: bool
    op_offload: bool
    repack: bool
    no_host: bool
    use_mmap: bool
    use_mlock: bool
    use_direct_io: bool
    check_tensors: bool
    numa: str
    fit: bool
    fit_target_mib: int
    fit_ctx: int
    loras: list[LoraParams]
    lora_init_without_apply: bool
    cache_ram_mib: int
    cache_idle_slots: bool
    n_ctx_checkpoints: int
    checkpoint_min_step: int
    slot_prompt_similarity: float
    n_predict: int
    special: bool
    warmup: bool
    sleep_idle_s: int
    sleep_keep_cache: bool
    slots_debug: bool
    speculation: SpeculationParams

def problems_of(params: EngineParams) -> list[str]:
    """Every violation of a range or combination, in words; empty when all is well."""

class GrammarTrigger:
    """What starts a lazy grammar."""

    def __init__(self, kind: str = "word", value: str = "", token: int = -1) -> None: ...
    kind: str
    value: str
    token: int

class ReasoningParams:
    """Budget of reasoning; inactive without end tags."""

    def __init__(self) -> None: ...
    start_tag: str
    end_tags: list[str]
    budget_tokens: int
    message: str
    starts_open: bool
    controllable: bool

class SamplingParams:
    """How tokens are chosen; the defaults are llama-server's."""

    def __init__(self) -> None: ...
    seed: int
    samplers: list[str]
    temperature: float
    dynatemp_range: float
    dynatemp_exponent: float
    top_k: int
    top_p: float
    min_p: float
    top_n_sigma: float
    typical_p: float
    xtc_probability: float
    xtc_threshold: float
    repeat_last_n: int
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: list[str]
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    adaptive_target: float
    adaptive_decay: float
    min_keep: int
    ignore_eos: bool
    logit_bias: list[tuple[int, float]]
    grammar: str
    grammar_lazy: bool
    grammar_triggers: list[GrammarTrigger]
    preserved_tokens: list[int]
    reasoning: ReasoningParams

class GenerationParams:
    """Everything that a generating request may set."""

    def __init__(self) -> None: ...
    sampling: SamplingParams
    n_predict: int
    n_keep: int
    n_discard: int
    n_indent: int
    n_cache_reuse: int
    t_max_predict_ms: int
    cache_prompt: bool
    stream: bool
    return_tokens: bool
    return_progress: bool
    timings_per_token: bool
    post_sampling_probs: bool
    n_probs: int
    stop: list[str]
    lora: dict[int, float] | None
    speculation: SpeculationRequest
    loop_guard: LoopGuardParams

class Task:
    """One unit of work; copied when it is submitted."""

    def __init__(self) -> None: ...
    kind: str
    index: int
    tokens: list[int]
    params: GenerationParams
    id_slot: int
    completion_id: str
    children: list[int]
    parent: int
    embd_normalize: int
    file_name: str
    lora_scales: dict[int, float]
    file_path: str

class TokenProbability:
    """A candidate with its probability in [0, 1]."""

    token: Final[int]
    probability: Final[float]
    piece: Final[bytes]

class TokenRecord:
    """The chosen token and its alternatives, sorted descending."""

    chosen: Final[TokenProbability]
    top: Final[list[TokenProbability]]

class Timings:
    """Milliseconds and rates."""

    cache_n: Final[int]
    prompt_n: Final[int]
    prompt_ms: Final[float]
    prompt_per_token_ms: Final[float]
    prompt_per_second: Final[float]
    predicted_n: Final[int]
    predicted_ms: Final[float]
    predicted_per_token_ms: Final[float]
    predicted_per_second: Final[float]

class PromptProgress:
    """How far a prompt is, in tokens."""

    total: Final[int]
    cache: Final[int]
    processed: Final[int]
    time_ms: Final[int]

class LoraView:
    """An adapter of the server's list."""

    id: Final[int]
    scale: Final[float]
    invocation_tokens: Final[list[int]]
    path: Final[str]
    task_name: Final[str]
    prompt_prefix: Final[str]
    invocation_text: Final[str]

class Result:
    """What a task gives back; read only."""

    text: Final[bytes]
    stopping_word: Final[bytes]
    stop_detail: Final[str]
    id: Final[int]
    kind: Final[str]
    index: Final[int]
    id_slot: Final[int]
    tokens: Final[list[int]]
    records: Final[list[TokenRecord]]
    n_decoded: Final[int]
    n_prompt_tokens: Final[int]
    n_prompt_cached: Final[int]
    has_timings: Final[bool]
    timings: Final[Timings]
    is_progress: Final[bool]
    progress: Final[PromptProgress]
    truncated: Final[bool]
    has_new_line: Final[bool]
    stop: Final[str]
    n_tokens_cached: Final[int]
    n_reasoning_tokens: Final[int]
    speculation: Final[SpeculationReport]
    loop_guard: Final[LoopGuardReport]
    embeddings: Final[list[list[float]]]
    score: Final[float]
    n_slot_tokens: Final[int]
    n_bytes: Final[int]
    action_ms: Final[float]
    loras: Final[list[LoraView]]
    success: Final[bool]
    error: Final[str]
    n_ctx: Final[int]
    is_last: Final[bool]

class SlotView:
    """A slot as it was at the end of a cycle."""

    id: Final[int]
    n_ctx: Final[int]
    state: Final[str]
    idle_ms: Final[int]
    n_cached_tokens: Final[int]
    n_checkpoints: Final[int]
    was_used: Final[bool]
    id_task: Final[int]
    n_prompt_tokens: Final[int]
    n_prompt_processed: Final[int]
    n_prompt_cached: Final[int]
    has_next_token: Final[bool]
    has_new_line: Final[bool]
    n_remaining: Final[int]
    n_decoded: Final[int]
    timings: Final[Timings]
    prompt_tokens: Final[list[int]]
    speculation: Final[SpeculationReport]
    loop_guard: Final[LoopGuardReport]
    params: Final[GenerationParams | None]
    generated: Final[bytes]

class Totals:
    """Counts since the start; times in microseconds."""

    prompt_tokens: Final[int]
    prompt_tokens_cached: Final[int]
    prompt_us: Final[int]
    predicted_tokens: Final[int]
    predicted_us: Final[int]
    n_decode: Final[int]
    decode_failures: Final[dict[int, int]]
    n_tokens_max: Final[int]
    busy_slots: Final[int]
    refills: Final[int]
    checkpoints_created: Final[int]
    checkpoints_restored: Final[int]
    checkpoints_evicted: Final[int]
    prompt_rate: Final[float]
    predicted_rate: Final[float]
    speculation: Final[SpeculationTotals]

class Snapshot:
    """What the engine was doing at the end of its last cycle; never changes."""

    state: Final[str]
    slots: Final[list[SlotView]]
    totals: Final[Totals]
    n_processing: Final[int]
    n_deferred: Final[int]
    prompt_cache_bytes: Final[int]
    prompt_cache_entries: Final[int]

class ContextFacts:
    """Fixed facts of a context; sizes in tokens."""

    n_ctx: Final[int]
    n_ctx_slot: Final[int]
    n_ctx_train: Final[int]
    n_batch: Final[int]
    n_ubatch: Final[int]
    n_embd_out: Final[int]
    n_swa: Final[int]
    kv_unified: Final[bool]
    has_memory: Final[bool]
    can_shift: Final[bool]
    is_recurrent: Final[bool]
    is_hybrid: Final[bool]
    removal: Final[str]
    n_rs_seq: Final[int]
    backend_sampler: Final[bool]
    backend_multi_output: Final[bool]
    pooling: Final[int]
    n_classes: Final[int]

class ModelMeta:
    """Facts of a model, readable while the engine sleeps."""

    chat_template: Final[str]
    chat_template_tool_use: Final[str]
    rerank_template: Final[str]
    bos_text: Final[str]
    eos_text: Final[str]
    file_type: Final[str]
    description: Final[str]
    library_version: Final[str]
    bos: Final[int]
    eos: Final[int]
    sep: Final[int]
    fim_prefix: Final[int]
    fim_suffix: Final[int]
    fim_middle: Final[int]
    fim_repository: Final[int]
    fim_separator: Final[int]
    adds_bos: Final[bool]
    adds_eos: Final[bool]
    adds_sep: Final[bool]
    vocab_type: Final[int]
    n_vocab: Final[int]
    n_ctx_train: Final[int]
    n_embd: Final[int]
    n_params: Final[int]
    size_bytes: Final[int]

class Engine:
    """A model, its slots, and the thread that decodes for them."""

    def __init__(self, params: EngineParams) -> None: ...
    def load(self) -> None:
        """Loads the model; raises LoadError."""
    def start(self) -> None:
        """Starts the decode thread."""
    def submit(self, tasks: Sequence[Task]) -> list[int]:
        """Takes the tasks of one request and gives them ids; never blocks."""
    def cancel(self, ids: Sequence[int]) -> None: ...
    def poll(self, max: int, wait: bool) -> list[Result]:
        """Up to `max` results; with `wait` blocks until there is one or the engine stops."""
    def notify_fd(self) -> int:
        """A descriptor that is readable while results wait."""
    def snapshot(self) -> Snapshot: ...
    def state(self) -> str: ...
    def meta(self) -> ModelMeta | None: ...
    def facts(self) -> ContextFacts | None: ...
    def n_slots(self) -> int: ...
    def speculation(self) -> SpeculationFacts:
        """Drafters of the last load."""
    def sleep(self) -> None: ...
    def wake(self) -> bool:
        """Whether it is ready afterwards."""
    def shutdown(self, timeout_ms: int) -> bool: ...
    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]: ...
    def detokenize(self, ids: Sequence[int], special: bool) -> bytes: ...
    def piece(self, id: int, special: bool) -> bytes: ...

class Device:
    """A device other than the CPU."""

    name: Final[str]
    description: Final[str]
    total_bytes: Final[int]
    free_bytes: Final[int]

def list_devices() -> list[Device]: ...
def library_info() -> dict[str, str | bool]:
    """Version, features of the processor in use, and what this build of llama.cpp can do."""

def set_log_verbosity(verbosity: int) -> None:
    """Lines up to this level reach stderr: 1 errors, 2 warnings, 3 information (default), 4 and 5 more."""

def _set_backend_folder(folder: str) -> None:
    """Where backends lie that are libraries of their own."""
