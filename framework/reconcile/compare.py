"""What a changed request means for a running instance (07 §3). Pure; called by reconcile.actions.

Requested is compared with requested, never with what was granted or runs: an applied value often differs
from the asked one, and comparing it with the ask would restart the same manifest for ever (07 §3.1).
Applied values may only turn `restart` into `nothing` (07 §3.2).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, asdict, fields, is_dataclass
from hashlib import sha256
from typing import Any

from framework.engines.args import values_of
from framework.engines.command_line import SLOT_SAVE_FLAG
from framework.engines.redaction import is_secret_name, redact_argv
from framework.reconcile.pool_changes import pool_changes, same_pick
from framework.reconcile.spec_changes import same_speculation
from framework.values.action import FieldChange
from framework.values.instance import InstanceView
from framework.values.plan import REDACTED
from framework.values.request import Effect, LiveSettings, ModelRequest

# Manifest names of fields that are called otherwise in code; the last three are forms of one field.
PART_NAMES = {
    "env": "environment",
    "env_passthrough": "environment_passthrough",
    "ngram_match": "ngram.match",
    "ngram_min": "ngram.min",
    "ngram_max": "ngram.max",
    "backoff_max_s": "max_backoff",
    "window_s": "window",
    "stable_after_s": "stable_after",
    "path": "binary",
    "dir": "binary",
    "command": "binary",
}
SPLIT_FLAGS = ("-sm", "--split-mode")
SPLIT_VARIABLE = "LLAMA_ARG_SPLIT_MODE"
TENSOR = "tensor"
# An exemption looks at both requests and at what runs, and says why the change does nothing, or "".
Exemption = Callable[[ModelRequest, ModelRequest, InstanceView | None], str]


def request_digest(request: ModelRequest) -> str:
    """SHA-256 over sorted JSON of everything except `live` (07 §3.3), as hex."""
    values = {key: value for key, value in asdict(request).items() if key != "live"}
    return sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def compare_requests(
    old: ModelRequest, new: ModelRequest, running: InstanceView | None
) -> tuple[FieldChange, ...]:
    """Every field that differs, by manifest name, with its effect on `running` (None: nothing runs)."""
    return (*_launch_changes(old, new, running), *_live_changes(old.live, new.live))


def strongest_effect(changes: tuple[FieldChange, ...]) -> Effect | None:
    """`restart` over `live` over `nothing`; None when nothing changed."""
    effects = {change.effect for change in changes}
    order: tuple[Effect, ...] = ("restart", "live", "nothing")
    return next((effect for effect in order if effect in effects), None)


def _launch_changes(
    old: ModelRequest, new: ModelRequest, running: InstanceView | None
) -> Iterator[FieldChange]:
    for field in fields(ModelRequest):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if field.name == "live" or before == after:
            continue
        if field.name == "pool":
            yield from pool_changes(old, new, running)
            continue
        effect, why = _effect(field, old, new, running)
        for name, was, now in _parts(_table(field, new), before, after):
            yield FieldChange(name, was, now, effect, why)


def _effect(
    field: Field[Any], old: ModelRequest, new: ModelRequest, running: InstanceView | None
) -> tuple[Effect, str]:
    if running is None:
        return "nothing", "no instance runs; used at the next start"
    if getattr(running.request, field.name) == getattr(new, field.name):
        return "nothing", "what runs has it already: the change before did not come to pass"
    exempt = EXEMPTIONS.get(field.name)
    why = exempt(old, new, running) if exempt else ""
    if why:
        return "nothing", why
    effect: Effect = field.metadata["effect"]
    return effect, "part of the command line or environment of the process"


def _live_changes(old: LiveSettings, new: LiveSettings) -> Iterator[FieldChange]:
    for field in fields(LiveSettings):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            for name, was, now in _parts(field.metadata["manifest"], before, after):
                yield FieldChange(name, was, now, "live", "applied to the running instance, no restart")


def _table(field: Field[Any], request: ModelRequest) -> str:
    """The manifest's name of what a field holds: a table of its own for the engine."""
    is_engine = field.name == "engine"
    return f"engines.{request.engine.name}" if is_engine else str(field.metadata["manifest"])


def _parts(name: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """A nested table is reported field by field, so that the first difference has a name. Without secrets:
    changes are shown, logged and kept."""
    if is_dataclass(before) and type(before) is type(after):
        for field in fields(before):
            was, now = getattr(before, field.name), getattr(after, field.name)
            if was != now:
                yield from _parts(f"{name}.{PART_NAMES.get(field.name, field.name)}", was, now)
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                hidden = is_secret_name(key)
                shown = [REDACTED if hidden and key in side else side.get(key) for side in (before, after)]
                yield f"{name}.{key}", shown[0], shown[1]
    elif name == "engine_args":
        yield name, redact_argv(before), redact_argv(after)
    else:
        yield name, before, after


def _same_cache_type(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    effective = [tuple(axis or "f16" for axis in request.cache_type) for request in (old, new)]
    return "f16 is what llama-server uses when nothing is named" if effective[0] == effective[1] else ""


def _same_engine(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    def unnamed(request: ModelRequest) -> dict[str, Any]:
        return {key: value for key, value in asdict(request.engine).items() if key != "name"}

    return "both engine tables say the same" if unnamed(old) == unnamed(new) else ""


def _layers_unused(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    return "" if new.memory_mode == "manual" else "placement is automatic"


def _manual_layers_unused(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    if new.memory_mode != "manual" or new.gpu_layers < 0:
        return "used only with manual placement and a number of gpu_layers"
    return ""


def _ratio_unused(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    if running is not None and running.plan is not None and len(running.plan.placement.devices) == 1:
        return "one device is in use, so there is nothing to share out"
    return _manual_layers_unused(old, new, running)


def _same_split(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    return "both ask for the same split" if _asks_for_tensor(old) == _asks_for_tensor(new) else ""


def _asks_for_tensor(request: ModelRequest) -> bool:
    """06 §5.3: the last flag decides, then the manifest, then the environment."""
    given = list(values_of(request.extra_args, SPLIT_FLAGS))
    if given:
        return given[-1] == TENSOR
    env = {**request.engine.env, **request.env}
    return request.tensor_parallel or env.get(SPLIT_VARIABLE) == TENSOR


def _same_batch(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    effective = [(request.batch, min(request.batch, request.ubatch)) for request in (old, new)]
    return "the physical batch is capped by the logical one" if effective[0] == effective[1] else ""


def _never_saves(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    plan = running.plan if running is not None else None
    if plan is None or plan.caps.has(SLOT_SAVE_FLAG):
        return ""
    return f"the engine that runs has no {SLOT_SAVE_FLAG}"


EXEMPTIONS: Mapping[str, Exemption] = {
    "cache_type": _same_cache_type,
    "engine": _same_engine,
    "devices": same_pick,
    "tensor_parallel": _same_split,
    "spec": same_speculation,
    "gpu_layers": _layers_unused,
    "n_cpu_moe": _manual_layers_unused,
    "tensor_split": _ratio_unused,
    "batch": _same_batch,
    "ubatch": _same_batch,
    "slot_save": _never_saves,
}
"""Field of ModelRequest to the rule of 07 §3.5-3.7 under which its change does nothing."""
