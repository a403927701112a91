"""Which projector and which drafter belong to a model (02 §12). Only `find_companions` looks at files.

Called for listings by the hub client, for local files by facts. A file that does not suit the model is not
attached: an engine would give up the whole load on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from framework.models.file_names import base_name, is_gguf, repo_path, shard
from framework.models.gguf_fields import GgufHeader
from framework.models.gguf_tensors import TensorResult
from framework.values.reason import Reason
from framework.values.speculation import DrafterKind

PROJECTOR_WORD = "mmproj"
PREFERRED_ENDING = "-f16.gguf"
PROJECTOR_ARCHITECTURE = "clip"
"""What all projectors call themselves, of whatever family."""
DRAFTER_START = "mtp-"
# What drafters that work as a prediction head call themselves, besides the start of their name.
HEAD_ARCHITECTURES = frozenset({"gemma4-assistant"})
KIND_OF_ARCHITECTURE: Mapping[str, DrafterKind] = {"eagle3": "eagle3", "dflash": "dflash"}
# These map tokens of their own to the model's, or borrow its vocabulary.
OWN_VOCABULARY = frozenset(KIND_OF_ARCHITECTURE.values())
# llama.cpp's own limit: models of one family differ by some reserved tokens.
MOST_TOKENS_APART = 128
# How llama.cpp reads the names of tokenizers; a drafter must have the model's way to cut text into tokens.
VOCABULARY_TYPES = {
    "llama": "SPM",
    "gpt2": "BPE",
    "gemma4": "BPE",
    "bert": "WPM",
    "t5": "UGM",
    "rwkv": "RWKV",
    "plamo2": "PLaMo-2",
}
NO_MODELS = {"mmproj": "a projector", "adapter": "an adapter", "imatrix": "an importance matrix"}
"""What files are that say of themselves that they are no model."""
# Names of model families; files of two different ones never belong together (02 §12.6).
FAMILIES = (
    *("gemma", "qwen", "llama", "mistral", "ministral", "pixtral", "phi", "internvl", "minicpm", "llava"),
    *("smolvlm", "glm", "kimi", "granite", "deepseek", "ernie", "lfm", "moondream", "nemotron", "hunyuan"),
    "step",
)
PARTS = re.compile(r"[-_.]")
# Tensors of a projector that lead from its own width to that of the model.
MODEL_SIDE = "mm."
# A folder with more entries is not one that somebody keeps models in.
MOST_ENTRIES = 10_000
# Of those beside a model, the most similar by name; looking into one that is damaged takes a while.
MOST_TRIED = 64
MOST_SHOWN = 3

Read = Callable[[Path], TensorResult]
"""Reads the header of a file; never raises."""


@dataclass(frozen=True)
class Companion:
    """A companion's file, or why what is there is not used; neither where there is nothing."""

    path: Path | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Companions:
    """What stands beside a model and suits it, and why something else there does not."""

    projector: Path | None = None
    drafter: Path | None = None
    reasons: tuple[Reason, ...] = ()


def choose_projector(paths: Iterable[str]) -> str | None:
    """The projector of a repository: the first by name, f16 before others (02 §12.2)."""
    found = sorted(path for path in paths if is_gguf(path) and PROJECTOR_WORD in base_name(path).lower())
    preferred = [path for path in found if path.lower().endswith(PREFERRED_ENDING)]
    return next(iter(preferred or found), None)


def families(path: str) -> frozenset[str]:
    """The families that a base name speaks of."""
    parts = PARTS.split(base_name(path).lower())
    return frozenset(family for family in FAMILIES if any(part.startswith(family) for part in parts))


def other_family(path: str, model_path: str) -> bool:
    """Whether both names speak of families and share none (02 §12.6)."""
    own, models = families(path), families(model_path)
    return bool(own and models and not own & models)


def projector_fault(
    path: Path, projector: TensorResult, model_path: Path, model: TensorResult
) -> Reason | None:
    """Why this projector must not be launched with this model; None where nothing speaks against it."""
    if projector.status != "ok":
        return _unreadable(path, projector, model_path)
    architecture = projector.header.architecture
    if architecture != PROJECTOR_ARCHITECTURE:
        evidence: dict[str, object] = {"architecture": architecture}
        return _unfit(path, model_path, f"it is a {architecture or 'nameless'} model, no projector", evidence)
    if other_family(path.name, model_path.name):
        return _unfit(path, model_path, "the names are of different model families", {})
    wanted, given = model.header.embedding_length, _projection(projector)
    if wanted is None or given is None or wanted in _model_side_widths(projector):
        return None
    evidence = {"projection": given, "embedding": wanted}
    return _unfit(path, model_path, f"it projects to {given} values, the model takes {wanted}", evidence)


def choose_drafter(paths: Iterable[str]) -> str | None:
    """The drafter of a repository: the first by name of those that are not in a folder (02 §12.4)."""
    at_the_top = (path for path in paths if is_gguf(path) and "/" not in repo_path(path))
    return min(filter(_is_drafter_name, at_the_top), default=None)


def drafter_kind(name: str, header: GgufHeader) -> DrafterKind:
    """How a drafter works, by its file name and its architecture (05 §2.5)."""
    architecture = (header.architecture or "").lower().replace("_", "-")
    if _is_drafter_name(name) or architecture in HEAD_ARCHITECTURES:
        return "mtp"
    return KIND_OF_ARCHITECTURE.get(architecture, "plain")


def drafter_fault(
    path: Path, drafter: TensorResult, model_path: Path, model: TensorResult, *, is_named: bool = False
) -> Reason | None:
    """Why this drafter must not be used for this model; None where nothing speaks against it.

    Names of families are only hints: of a drafter that somebody named they count where the vocabularies are
    not known.
    """
    if drafter.status != "ok":
        return _unreadable(path, drafter, model_path)
    header = drafter.header
    if header.architecture == PROJECTOR_ARCHITECTURE or header.kind in NO_MODELS:
        what = NO_MODELS.get(header.kind or "", "a projector")
        return _unfit(path, model_path, f"it is {what}, no model that drafts", {"kind": header.kind})
    own, wanted = header.vocab_size, model.header.vocab_size
    if drafter_kind(path.name, header) not in OWN_VOCABULARY:
        fault = _vocabulary_fault(path, header, model_path, model.header)
        if fault is not None or (is_named and own and wanted):
            return fault
    if other_family(path.name, model_path.name):
        return _unfit(path, model_path, "the names are of different model families", {})
    return None


def _vocabulary_fault(path: Path, own: GgufHeader, model_path: Path, model: GgufHeader) -> Reason | None:
    """With another vocabulary engines load a drafter and never use it."""
    evidence: dict[str, object]
    kind, wanted_kind = (VOCABULARY_TYPES.get(one.tokenizer_model or "") for one in (own, model))
    if kind and wanted_kind and kind != wanted_kind:
        evidence = {"vocabulary_type": kind, "model_vocabulary_type": wanted_kind}
        return _unfit(path, model_path, f"its vocabulary is {kind}, the model's {wanted_kind}", evidence)
    tokens, wanted = own.vocab_size, model.vocab_size
    if tokens and wanted and abs(tokens - wanted) > MOST_TOKENS_APART:
        evidence = {"vocabulary": tokens, "model_vocabulary": wanted}
        return _unfit(path, model_path, f"it has {tokens:,} tokens, the model has {wanted:,}", evidence)
    return None


def find_companions(main: Path, model: TensorResult, read: Read) -> Companions:
    """Projector and drafter among the neighbours of a local model file."""
    projector = find_projector(main, model, read)
    names = [name for name in _neighbours(main) if _is_drafter_name(name)]
    drafter = _first_suitable(names, lambda path: drafter_fault(path, read(path), main, model), main)
    return Companions(projector.path, drafter.path, (*projector.reasons, *drafter.reasons))


def find_projector(main: Path, model: TensorResult, read: Read) -> Companion:
    """The projector among the neighbours of a local model file."""
    names = [name for name in _neighbours(main) if PROJECTOR_WORD in name.lower()]
    return _first_suitable(names, lambda path: projector_fault(path, read(path), main, model), main)


def _first_suitable(names: list[str], fault: Callable[[Path], Reason | None], main: Path) -> Companion:
    """The most similar by name, f16 before others, that has no fault; reasons only where none is left."""
    reasons = []
    for name in sorted(names, key=lambda name: _order(name, main.name))[:MOST_TRIED]:
        reason = fault(main.parent / name)
        if reason is None:
            return Companion(main.parent / name)
        reasons.append(reason)
    shown = reasons[:MOST_SHOWN]
    if more := len(names) - len(shown):
        shown.append(_more(more, main))
    return Companion(None, tuple(shown))


def _order(name: str, main: str) -> tuple[int, bool, str]:
    return -_shared_parts(name, main), not name.lower().endswith(PREFERRED_ENDING), name


def _shared_parts(name: str, main: str) -> int:
    """How many parts of the model's name the companion has too, counted from the model's front."""
    own = set(PARTS.split(name.lower()))
    shared = 0
    for part in PARTS.split(main.lower()):
        if part not in own:
            break
        shared += 1
    return shared


def _neighbours(main: Path) -> list[str]:
    """Names of the GGUF files beside a model, without it and without later shards."""
    found = []
    try:
        with os.scandir(main.parent) as entries:
            for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
                part = shard(entry.name)
                if is_gguf(entry.name) and entry.name != main.name and (part is None or part.index == 1):
                    found.append(entry.name)
    except OSError:
        return []
    return sorted(found)


def _is_drafter_name(path: str) -> bool:
    return base_name(path).lower().startswith(DRAFTER_START)


def _projection(projector: TensorResult) -> int | None:
    header = projector.header
    return header.vision_projection or header.audio_projection


def _model_side_widths(projector: TensorResult) -> frozenset[int]:
    """What a projector may hand over. Old files name another width in the header, so tensors count too."""
    widths = {projector.header.vision_projection, projector.header.audio_projection}
    for tensor in projector.tensors:
        if tensor.name.startswith(MODEL_SIDE):
            widths.update(tensor.dims)
    return frozenset(width for width in widths if width)


def _more(count: int, main: Path) -> Reason:
    return Reason(
        "companion_unfit",
        f"Beside {main.name} are {count:,} more such files that are not used with it.",
        "Keep only the one that belongs to the model in its folder.",
        "warning",
        {"model": str(main), "more": count},
    )


def _unreadable(path: Path, found: TensorResult, model: Path) -> Reason:
    detail = found.detail.removeprefix("cannot be read: ")
    return _unfit(path, model, f"it cannot be read: {detail}", {"status": found.status})


def _unfit(path: Path, model: Path, why: str, evidence: Mapping[str, object]) -> Reason:
    return Reason(
        "companion_unfit",
        f"{path.name} is not used with {model.name}: {why}.",
        "Get the file that belongs to this model, or move the other one away.",
        "warning",
        {"path": str(path), "model": str(model), **evidence},
    )
