"""What the saved slots of an instance belong to: the slot fingerprint (07 §11.3). Pure.

A slot file holds numbers, and says nothing of where they come from. It is given to a process only where all
that these numbers depend on is the same, to the time of each file. Called by runtime.slot_saving and
runtime.slot_restoring, with files looked at by runtime.slot_files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.engines.args import context
from framework.manifest.environment import ENGINE_PREFIX
from framework.planning.line_settings import line_of
from framework.planning.slot_saving.grant import saves_slots
from framework.planning.slot_saving.sidecars import sidecars
from framework.values.plan import LaunchPlan, LaunchResult

SPECULATION_VARIABLES = ("LLAMA_ARG_SPEC", "LLAMA_ARG_DRAFT")
Stamp = tuple[int, int]
"""Size in bytes and time of change in ns of a file."""
WORDS = {
    "dir": "the folder of saved slots",
    "binary": "the engine",
    "gguf": "the model file",
    "gguf_stat": "the content of the model file",
    "engine_args": "engine_args",
    "sidecars": "an adapter or a control vector",
    "context_asked": "the context that is asked for",
    "context": "the context",
    "cache_types": "the type of the key and value cache",
    "slots": "the number of slots",
    "full_window": "full_window_cache",
    "unified": "whether slots share one cache",
    "micro_batch": "batch.physical",
    "flash_attention": "flash attention",
    "adapters": "the adapters",
    "variables": "environment",
}
"""Parts of a fingerprint, in the words of a sentence."""


@dataclass(frozen=True)
class SlotFingerprint:
    """All that saved slots depend on. Values are as JSON has them."""

    dir: str
    binary: tuple[str, int]
    """Path, and time of change in ns."""
    gguf: str
    gguf_stat: tuple[Stamp, ...] | None
    """Of every file of the model; None where one of them cannot be looked at."""
    launch: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The fields of 07 §11.8."""
        return {
            "dir": self.dir,
            "binary": list(self.binary),
            "gguf": self.gguf,
            "gguf_stat": None if self.gguf_stat is None else [list(stamp) for stamp in self.gguf_stat],
            "launch": dict(self.launch),
        }


@dataclass(frozen=True)
class Loaded:
    """What the slots of an instance belong to, as it was when it got ready."""

    plan: LaunchPlan
    """As the last attempt of its start left it."""
    result: LaunchResult
    fingerprint: SlotFingerprint
    restored: Mapping[int, int] = field(default_factory=dict)
    """Tokens of the slots that it was given, by number."""


def files_of(plan: LaunchPlan) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files of the model, and those beside it, that a fingerprint has to know the stamps of."""
    request = plan.request
    beside = sidecars((path for path, _ in request.adapters), request.extra_args)
    return (plan.main_gguf, *plan.shards), tuple(map(Path, beside))


def fingerprint(
    folder: Path, launched: LaunchPlan, result: LaunchResult, stamps: Mapping[Path, Stamp | None]
) -> SlotFingerprint:
    """The fingerprint of a launch that is up. `launched` is its plan as the last attempt left it, `stamps`
    are those of `files_of`, None for a file that cannot be looked at."""
    shards, beside = files_of(launched)
    found = [stamps.get(path) for path in shards]
    whole = tuple(stamp for stamp in found if stamp is not None)
    engine = launched.engine.file
    return SlotFingerprint(
        dir=os.fspath(folder),
        binary=(os.fspath(engine.path), engine.mtime_ns),
        gguf=os.fspath(launched.main_gguf),
        gguf_stat=whole if len(whole) == len(shards) else None,
        launch={
            **_settings(launched),
            "sidecars": [[os.fspath(path), *(stamps.get(path) or (None, None))] for path in beside],
            "context": result.context,
            "slots": result.slots,
        },
    )


def difference(saved: Mapping[str, Any], now: SlotFingerprint) -> str:
    """What of a record's fingerprint is not as it is now, in words; empty where everything is."""
    mine = now.as_json()
    parts, own = saved.get("launch"), mine["launch"]
    if not isinstance(parts, Mapping):
        return "what it holds"
    for name in ("dir", "binary", "gguf", "gguf_stat"):
        if saved.get(name) != mine[name] or mine[name] is None:
            return WORDS[name]
    for name, value in own.items():
        if name not in parts or parts[name] != value:
            return WORDS[name]
    return "" if parts.keys() == own.keys() else "what it holds"


def may_go_on(old: LaunchPlan, new: LaunchPlan) -> bool:
    """Whether a replacement can be given the slots of what it replaces, as far as that is known before it is
    up: another model, engine or setting is a difference for sure (07 §11.10)."""
    is_same = (old.main_gguf, old.engine.file) == (new.main_gguf, new.engine.file)
    return saves_slots(old) and saves_slots(new) and is_same and _settings(old) == _settings(new)


def _settings(plan: LaunchPlan) -> dict[str, Any]:
    """What is asked of a launch, as far as it changes what slots hold.

    Beyond the list of 07 §11.3: scales of adapters and variables of the engine, which change the numbers just
    as flags do.
    """
    request, cache = plan.request, line_of(plan).cache
    return {
        "engine_args": _digest(request.extra_args),
        "context_asked": context(request.extra_args, request.n_ctx),
        "cache_types": [cache.key_type, cache.value_type],
        "full_window": cache.swa_full,
        "unified": cache.unified,
        "micro_batch": cache.ubatch,
        "flash_attention": cache.flash_attention,
        "adapters": [[os.fspath(path), scale] for path, scale in request.adapters],
        "variables": _digest(sorted(pair for pair in plan.env.items() if _changes_numbers(pair[0]))),
    }


def _changes_numbers(variable: str) -> bool:
    """Whether a variable is one of the engine's settings. Drafts are checked by the model: they change no
    number."""
    return variable.startswith(ENGINE_PREFIX) and not variable.startswith(SPECULATION_VARIABLES)


def _digest(value: object) -> str:
    """Arguments and variables are compared, and nobody has to read them."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
