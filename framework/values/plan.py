"""The decision made from a request and facts, before anything runs, and what came of it (06 §0, 03 §1.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.reason import Failure, Reason
from framework.values.reasoning import NO_REASONING, ReasoningFacts
from framework.values.request import ModelRequest
from framework.values.speculation import SpecInputs

Basis = Literal["measured", "computed", "assumed"]
RemedyKind = Literal["cache_type", "slots", "context", "variant", "experts", "layers"]
REDACTED = "<redacted>"


@dataclass(frozen=True)
class Section:
    """A named, ordered part of a command line. Recovery changes sections, never positions (06 §6.1)."""

    name: str
    tokens: tuple[str, ...]
    kind: Literal["core", "optional", "user"] = "core"


@dataclass(frozen=True)
class SpecDecision:
    """What a speculation policy came to (05 §1). `block` is the section of the command line."""

    requested: str | None
    """The canonical mode; None where the user drives speculation in `engine_args`."""
    resolved: str
    """`draft-mtp`, `draft-simple`, `draft-eagle3`, `draft-dflash`, `ngram-mod`, `ngram-simple`, `default`,
    `none` or `user`."""
    block: tuple[str, ...] = ()
    reason: Reason | None = None
    """Why drafting is not what was wanted."""
    notes: tuple[Reason, ...] = ()
    is_chained: bool = False
    """N-gram drafts are tried before those of an embedded head or its drafter."""
    depth: int | None = None
    """Drafted tokens per step, where a `draft-` type is on the line with a depth."""
    depth_source: Literal["policy", "default"] | None = None
    drafter: str | None = None
    """File or hub id of the separate model that drafts."""


@dataclass(frozen=True)
class Withheld:
    """What earlier processes of a model showed that it must not be given again for now."""

    drafting: Reason | None = None
    """Why it is started without speculation: `runtime_error` or `speculation_unprofitable` (05 §11.4)."""
    tensor: Reason | None = None
    """Why its tensors are not divided over devices: `tensor_abort` (04 §12)."""
    engine: FileId | None = None
    """The program that showed it; another one gets everything again. None holds for any."""

    def for_engine(self, engine: FileId) -> Withheld:
        """What of it holds for a program."""
        return self if self.engine in (None, engine) else NOTHING_WITHHELD


NOTHING_WITHHELD = Withheld()


@dataclass(frozen=True)
class MemoryLine:
    """Bytes of one kind on one device, and how the number is known (labels: 13 §2)."""

    device: str
    label: str
    bytes: int
    basis: Basis
    mapped: bool = False
    """Pages of a file: the system can drop and read them again, and processes share them."""
    grows: bool = False
    """Taken bit by bit while the server runs, up to these bytes; the others are there from its start."""

    @property
    def is_needed(self) -> bool:
        """Whether a device has to hold it from the start, so that it counts against the budget."""
        return not (self.mapped or self.grows)


@dataclass(frozen=True)
class Remedy:
    """One change that makes a launch smaller; `frees_bytes` is what devices that are too full get back."""

    kind: RemedyKind
    to: str | int
    """Cache type, slots, tokens, name of a variant, layers with experts in host memory, or layers on GPUs."""
    frees_bytes: int
    fits: bool
    """Whether the launch fits with this change alone."""
    sentence: str
    """What to change, what it buys, what it costs."""


@dataclass(frozen=True)
class FitPlan:
    """Memory per device. `fits` is None while nothing was planned and the engine's own fit step decides."""

    lines: tuple[MemoryLine, ...] = ()
    budget_bytes: Mapping[str, int] = field(default_factory=dict)
    total_bytes: Mapping[str, int] = field(default_factory=dict)
    """Sum of the lines of each device."""
    fits: bool | None = None
    context: int | None = None
    """Tokens of all slots together that the lines are for; None while nothing was planned."""
    slots: int = 0
    cache_types: tuple[str, str] = ("f16", "f16")
    gpu_layers: int | None = None
    """Layers on GPUs, the output counted as one; None for all of them."""
    cpu_experts: int = 0
    """Experts of so many first layers are in host memory."""
    remedies: tuple[Remedy, ...] = ()
    """What to change when it does not fit, best first."""

    def needed_bytes(self, device: str) -> int:
        """What a device has to hold from the start: its lines without what is only mapped, or grows later."""
        return sum(line.bytes for line in self.lines if line.device == device and line.is_needed)


@dataclass(frozen=True)
class Placement:
    """Where a launch goes: devices by the names everybody sees, in the order of the engine."""

    devices: tuple[str, ...] = ()
    """GPUs that it may use; none for host memory alone."""
    child_names: Mapping[str, str] = field(default_factory=dict)
    """What the engine calls each of them, where it is shown only some and counts them anew."""
    is_delegated: bool = True
    """The engine's own fit step decides what goes where, because nothing better is known."""
    gpu_layers: int | None = None
    """Layers on GPUs, the output counted as one; None for all of them."""
    cpu_experts: int = 0
    split: Literal["layer", "tensor"] = "layer"
    shares: tuple[float, ...] = ()
    """Share of each device, by layers; empty leaves it to the engine."""
    needs_bytes: Mapping[str, int] = field(default_factory=dict)
    """What it will hold of each device, `CPU` included, from its start; what is only mapped is left out."""
    grows_bytes: Mapping[str, int] = field(default_factory=dict)
    """What it may come to hold besides while it serves."""

    @property
    def counted_bytes(self) -> Mapping[str, int]:
        """What people are told it needs: without GPUs with pages of its files, which take room as well."""
        if self.devices:
            return self.needs_bytes
        return Counter(self.needs_bytes) + Counter(self.mapped_bytes)

    mapped_bytes: Mapping[str, int] = field(default_factory=dict)
    """Pages of files that it reads in place, by device; the system can drop them and read them again."""


@dataclass(frozen=True)
class LaunchPlan:
    """One process to be: sections without port and key, environment without the key."""

    request: ModelRequest
    replica: int
    main_gguf: Path
    file_bytes: int
    """Size of the model's files together, for load progress."""
    engine: EngineBinary
    caps: Capabilities
    spec: SpecDecision
    sections: tuple[Section, ...]
    env: Mapping[str, str]
    context: int
    """Tokens per instance that were asked for; 0 leaves it to the engine's fit step."""
    slots: int
    unified: bool
    cache_types: tuple[str | None, str | None]
    """K and V as passed; None leaves the axis to the engine."""
    fingerprint: str
    fit: FitPlan = FitPlan()
    placement: Placement = Placement()
    reasons: tuple[Reason, ...] = ()
    context_train: int = 0
    """Tokens the model was trained for, 0 if unknown; an automatic context is at most this."""
    shards: tuple[Path, ...] = ()
    """The model's files besides `main_gguf`."""
    template: str | None = None
    """Chat template text that is written to a file of the run directory before the spawn."""
    projector: Path | None = None
    """For pictures and sound; None serves text only, whatever was asked for."""
    spec_inputs: SpecInputs | None = None
    """What the decision about speculation was made of, with nothing withheld; None where there was none."""
    reasoning: ReasoningFacts = NO_REASONING
    """What requests may ask of the chat template."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line with `{port}` and, where they are used, `{slots}` and `{template}` still open."""
        return tuple(token for section in self.sections for token in section.tokens)


@dataclass(frozen=True)
class Attempt:
    """One try of the recovery ladder (06 §12). `argv` is redacted, `rung` names the change made before it."""

    n: int
    rung: str
    argv: tuple[str, ...]
    outcome: Literal["healthy", "exited", "timeout", "port_taken", "incomplete", "decode_failed", "cancelled"]
    exit_code: int | None
    seconds: float
    log: Path


@dataclass(frozen=True)
class LaunchResult:
    """What a launch turned out to run; `context` is tokens over all slots."""

    outcome: Literal["ready", "cancelled", "failed", "replan"]
    """`replan`: it could not start with tensors divided, and is to be planned again without."""
    attempts: tuple[Attempt, ...] = ()
    degradations: tuple[Reason, ...] = ()
    context: int | None = None
    slots: int = 0
    speculation: str | None = None
    """What really drafts: a resolved value, or the type of the user's own arguments; `none` for nothing."""
    speculation_reason: Reason | None = None
    """Why that is not what was resolved."""
    vision: bool = False
    audio: bool = False
    offload: bool | None = None
    load_s: float | None = None
    failure: Failure | None = None
    allocated_bytes: Mapping[str, int] = field(default_factory=dict)
    """What the engine says it took of each device, by the names everybody sees; empty if it did not say."""
    buffers: tuple[MemoryLine, ...] = ()
    """The same one by one, with the pages of files that it mapped; empty if it did not say."""
    held_bytes: Mapping[str, int] = field(default_factory=dict)
    """What the system said that its process held of host memory when it was ready; empty if it did not."""
