"""The compiled core as the HTTP side sees it: protocols over the extension module `paddock_native`.

Attribute names equal those of native/src/core/*.h; enums arrive as their names in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from framework.nativeserver.core_speculation import LoopGuardReport, Speculation, SpeculationReport


class TokenProbability(Protocol):
    """A candidate: probability in [0, 1], bytes of the token."""

    token: int
    piece: bytes
    probability: float


class TokenRecord(Protocol):
    """The chosen token and its alternatives, sorted descending."""

    chosen: TokenProbability
    top: Sequence[TokenProbability]


class Timings(Protocol):
    """Milliseconds and rates (10 §5.5)."""

    cache_n: int
    prompt_n: int
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float


class PromptProgress(Protocol):
    """Of `return_progress`."""

    total: int
    cache: int
    processed: int
    time_ms: int


class LoraView(Protocol):
    """An adapter of the server's list."""

    id: int
    path: str
    scale: float
    task_name: str
    prompt_prefix: str
    invocation_text: str
    invocation_tokens: Sequence[int]


class Result(Protocol):
    """One result of a task (native/src/core/result.h); `text` is bytes of valid UTF-8 when not cut."""

    id: int
    kind: str
    """partial final embedding rerank slot_save slot_restore slot_erase lora ok error"""
    index: int
    id_slot: int
    text: bytes
    tokens: Sequence[int]
    records: Sequence[TokenRecord]
    n_decoded: int
    n_prompt_tokens: int
    n_prompt_cached: int
    has_timings: bool
    timings: Timings
    is_progress: bool
    progress: PromptProgress
    truncated: bool
    has_new_line: bool
    stop: str
    """none eos word limit"""
    stop_detail: str
    stopping_word: bytes
    n_tokens_cached: int
    n_reasoning_tokens: int
    speculation: SpeculationReport
    loop_guard: LoopGuardReport
    embeddings: Sequence[Sequence[float]]
    score: float
    n_slot_tokens: int
    n_bytes: int
    action_ms: float
    loras: Sequence[LoraView]
    success: bool
    error: str
    """A kind of nativeserver.errors, when `kind` is error."""
    n_ctx: int


class Task(Protocol):
    """A task to submit; made by `Module.Task()`, then its attributes are set (native/src/core/task.h)."""

    kind: str
    index: int
    tokens: Sequence[int]
    params: Any
    """GenerationParams; `params.sampling` is SamplingParams, `params.sampling.reasoning` ReasoningParams."""
    id_slot: int
    completion_id: str
    children: Sequence[int]
    """Positions of the children within the same `submit` call."""
    parent: int
    embd_normalize: int
    file_name: str
    file_path: str
    lora_scales: Mapping[int, float]


class Engine(Protocol):
    """The engine object of the extension; native/src/core/engine.h says what each of these does."""

    def load(self) -> None:
        """Load the model; blocks. Raises LoadError."""
        ...

    def start(self) -> None:
        """Start the decode thread."""
        ...

    def submit(self, tasks: Sequence[Task]) -> list[int]:
        """Hand over tasks; their ids."""
        ...

    def cancel(self, ids: Sequence[int]) -> None:
        """End tasks; nothing more is heard of them."""
        ...

    def poll(self, max: int, wait: bool) -> list[Result]:  # noqa: A002
        """Results, at most `max`."""
        ...

    def notify_fd(self) -> int:
        """Readable while results wait."""
        ...

    def snapshot(self) -> Any:
        """What readers may see."""
        ...

    def state(self) -> str:
        """Name of the state."""
        ...

    def meta(self) -> Any:
        """ModelMeta of the last load, or None."""
        ...

    def facts(self) -> Any:
        """ContextFacts of the last load, or None."""
        ...

    def n_slots(self) -> int:
        """Slots after the load."""
        ...

    def speculation(self) -> Speculation:
        """Drafting after the load; also while the engine sleeps."""
        ...

    def sleep(self) -> None:
        """Take the model out of memory; blocks."""
        ...

    def wake(self) -> bool:
        """Load it again; blocks. Whether it is ready."""
        ...

    def shutdown(self, timeout_ms: int) -> bool:
        """End everything; False: not in time."""
        ...

    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids of UTF-8 text."""
        ...

    def detokenize(self, ids: Sequence[int], special: bool) -> bytes:
        """Bytes of tokens."""
        ...

    def piece(self, id: int, special: bool) -> bytes:  # noqa: A002
        """Bytes of one token."""
        ...
