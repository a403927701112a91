"""From single readings to the options of a server: which one counts, what follows from several (12 §19.6).

Called by command_line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.nativeserver.drafting_settings import (
    after_default,
    asked_types,
    loop_guard_settings,
    speculation_settings,
)
from framework.nativeserver.flags.values import WHOLE
from framework.nativeserver.options import ChatOptions, CorsOptions, ServerOptions
from framework.nativeserver.readings import Reading
from framework.nativeserver.usage_error import UsageError

SLOTS_DEBUG_VARIABLE = "LLAMA_SERVER_SLOTS_DEBUG"
AUTO_SLOTS = 4
PLAIN_TYPES = ("f32", "f16", "bf16")
FLASH_OFF = 0
NO_BREAKERS = "none"
NO_LIMIT = -1
ESCAPE = re.compile(r"\\([nrt'\"\\])")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
NO_MODEL = "error: no model given: name a GGUF file with -m, --model or LLAMA_ARG_MODEL"

Targets = dict[str, Any]


@dataclass(frozen=True)
class LogOptions:
    """How lines look, and where else they go."""

    file: Path | None = None
    prefix: bool = True
    timestamps: bool = True
    colors: str = "auto"
    """`on`, `off` or `auto`."""
    jsonl: bool = False
    disabled: bool = False


@dataclass(frozen=True)
class Settings:
    """What one command line asks for."""

    options: ServerOptions
    action: str = "serve"
    """Or `help`, `version`, `list-devices`, which need no options."""
    log: LogOptions = LogOptions()
    projector: str | None = None
    """A file for media, which no build can load yet (10 §25.1)."""
    warnings: tuple[str, ...] = field(default=())


def action_of(line: Sequence[Reading]) -> Settings | None:
    """What is asked for in place of serving; None when a server is wanted."""
    action = next((reading.value for reading in line if reading.flag.role == "action"), None)
    return None if action is None else Settings(ServerOptions(engine={}), action)


def settle(readings: Sequence[Reading], environ: Mapping[str, str]) -> Settings:
    """The settings that `readings` make, those of the environment first. Raises UsageError."""
    targets, warnings = _targets(after_default(readings)), list(_warnings(readings))
    kinds = asked_types(targets, warnings)
    options = ServerOptions(
        engine={**_engine(targets, environ), **_speculation(targets, kinds)},
        cors=CorsOptions(**_group(targets, "cors")),
        chat=ChatOptions(**_group(targets, "chat")),
        request_defaults=_request_defaults(targets),
        speculation_types=kinds,
        **_group(targets, "server"),
    )
    if (options.ssl_key_file is None) != (options.ssl_cert_file is None):
        raise UsageError("error: --ssl-key-file and --ssl-cert-file only work together")
    log = LogOptions(**_group(targets, "log"))
    return Settings(options, log=log, projector=targets.get("line.projector"), warnings=tuple(warnings))


def _targets(readings: Iterable[Reading]) -> Targets:
    """The value of every target: the last one, or all of them where they add up."""
    readings = list(readings)
    on_line = {reading.flag.target for reading in readings if not reading.from_environment}
    targets: Targets = {}
    for reading in readings:
        flag, target = reading.flag, reading.flag.target
        if not target or (reading.from_environment and target in on_line and not flag.adds_to_environment):
            continue
        if flag.collects:
            targets[target] = (*targets.get(target, ()), *reading.value)
        else:
            targets[target] = reading.value
    return targets


def _warnings(readings: Sequence[Reading]) -> Iterator[str]:
    spelt = {reading.flag: reading.source for reading in readings if not reading.from_environment}
    told = set()
    for reading in readings:
        flag = reading.flag
        if reading.from_environment and flag in spelt and not flag.adds_to_environment:
            yield f"warn: environment variable {reading.source} will be overwritten by {spelt[flag]}"
        if flag.role == "ignored" and flag not in told:
            told.add(flag)
            yield f"{reading.source} has {flag.help}"


def _group(targets: Targets, group: str) -> dict[str, Any]:
    prefix = f"{group}."
    return {
        target.removeprefix(prefix): value for target, value in targets.items() if target.startswith(prefix)
    }


def _engine(targets: Targets, environ: Mapping[str, str]) -> dict[str, Any]:
    engine = _group(targets, "engine")
    if "model_path" not in engine:
        raise UsageError(NO_MODEL)
    aliases = targets.get("server.aliases", ())
    engine["model_name"] = aliases[0] if aliases else Path(engine["model_path"]).name
    engine["context_given"] = "n_ctx" in engine
    if (layers := targets.get("line.layers")) is not None:
        engine.update(n_gpu_layers=layers, layers_given=True)
    if engine.get("n_parallel") == 0:
        raise UsageError("error: invalid value for n_parallel: --parallel is -1 for auto, or at least 1")
    if engine.get("kv_unified") is False and engine.get("n_parallel", NO_LIMIT) == NO_LIMIT:
        engine["n_parallel"] = AUTO_SLOTS  # auto would unify
    if "line.n_predict" in targets:
        engine["n_predict"] = targets["line.n_predict"]
    engine.update(_of_embeddings(targets))
    engine["slots_debug"] = _slots_debug(environ)
    _check_cache(engine)
    return engine


def _of_embeddings(targets: Targets) -> dict[str, Any]:
    if targets.get("server.reranking"):
        return {"embeddings": True, "reranking": True, "pooling": "rank"}
    return {"embeddings": True} if targets.get("server.embeddings") else {}


def _slots_debug(environ: Mapping[str, str]) -> bool:
    text = environ.get(SLOTS_DEBUG_VARIABLE, "0")
    if WHOLE.fullmatch(text) is None:
        raise UsageError(
            f'error while handling environment variable "{SLOTS_DEBUG_VARIABLE}": expected a whole number'
        )
    return int(text) != 0


def _check_cache(engine: Mapping[str, Any]) -> None:
    kind = engine.get("cache_type_v", PLAIN_TYPES[0])
    if kind not in PLAIN_TYPES and engine.get("flash_attention") == FLASH_OFF:
        raise UsageError(
            f"error: --cache-type-v {kind} needs flash attention, and --flash-attn is off: V cache"
            f" quantization requires flash_attn; use --flash-attn auto, or one of {', '.join(PLAIN_TYPES)}"
        )


def _speculation(targets: Targets, kinds: tuple[str, ...]) -> dict[str, Any]:
    settings = speculation_settings(targets, kinds)
    return {"speculation": settings} if settings else {}


def _request_defaults(targets: Targets) -> dict[str, Any]:
    defaults = _group(targets, "request")
    is_escaped = targets.get("line.escape", True)

    def texts(target: str) -> list[str]:
        return [_unescaped(text) if is_escaped else text for text in targets[target]]

    if guard := loop_guard_settings(targets):
        defaults["reasoning_loop_guard"] = guard
    if "line.n_predict" in targets:
        defaults["n_predict"] = targets["line.n_predict"]
    if "line.stops" in targets:
        defaults["stop"] = texts("line.stops")
    if breakers := targets.get("line.breakers"):
        is_none = breakers[-1] == NO_BREAKERS
        defaults["dry_sequence_breakers"] = [] if is_none else texts("line.breakers")
    if "line.constraint" in targets:
        name, value = targets["line.constraint"]
        defaults[name] = value
    return defaults


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), text)
