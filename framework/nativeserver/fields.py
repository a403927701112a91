"""What a generating request asks for, from its body and the server's defaults (12 §5).

Called by every route that generates. A field that is absent or `null` has the default that the command line
set, else the core's; a field of the wrong type or out of range is an error that names it. Fields that nobody
knows are ignored, as llama-server ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framework.nativeserver.constraint_fields import read_constraints, stop_strings
from framework.nativeserver.field_table import (
    FLOAT32_MAX,
    INT32_MAX,
    INT32_MIN,
    SAFE_INTEGER,
    Field,
    fault,
    lookup,
    read_field,
    wrong_type,
)
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.sampling_fields import MAX_PROBABILITIES, read_sampling
from framework.nativeserver.services import Services
from framework.nativeserver.speculation_fields import ignored_type_reason, read_loop_guard, read_speculation

MAX_ADAPTERS = 1024
MAX_RESPONSE_FIELDS = 128
"""Every one is looked for in every answer, which has half as many members, those of its settings included."""
MAX_RESPONSE_FIELD_NAME = 128
"""Characters: a few levels of names."""
N_PREDICT_NAMES = ("n_predict", "max_completion_tokens", "max_tokens")

FIELDS: tuple[Field, ...] = (
    Field(("stream",), "boolean", "stream"),
    Field(("cache_prompt",), "boolean", "cache_prompt"),
    Field(("return_tokens",), "boolean", "return_tokens"),
    Field(("return_progress",), "boolean", "return_progress"),
    Field(("timings_per_token",), "boolean", "timings_per_token"),
    Field(("post_sampling_probs",), "boolean", "post_sampling_probs"),
    Field(N_PREDICT_NAMES, "integer", "n_predict", -1, INT32_MAX),
    Field(("n_indent",), "integer", "n_indent", 0, INT32_MAX),
    Field(("n_keep",), "integer", "n_keep", -1, INT32_MAX),
    Field(("n_discard",), "integer", "n_discard", 0, INT32_MAX),
    Field(("n_cache_reuse",), "integer", "n_cache_reuse", 0, INT32_MAX),
    Field(("t_max_predict_ms",), "integer", "t_max_predict_ms", 0, SAFE_INTEGER, "clamp"),
)
PROBABILITY_NAMES = ("n_probs", "logprobs")
_PROBABILITIES = Field(PROBABILITY_NAMES, "integer", "n_probs", -1, MAX_PROBABILITIES)


@dataclass(frozen=True)
class RequestFields:
    """What concerns the whole request rather than one task."""

    n_choices: int
    id_slot: int
    ping_interval_s: int
    """Silence after which a stream says that it lives; -1: never."""
    include_usage: bool
    verbose: bool
    engine_report: bool
    """Whether the report of 12 §6.5 is wanted, by its own name or by `verbose`."""
    response_fields: tuple[str, ...]
    ignored_type: str = ""
    """Why the type of drafting that it names is not used; empty when it is, or none is named."""


def read_generation(body: Mapping[str, Any], services: Services) -> Any:
    """GenerationParams of the core module, filled in. Raises ApiError naming field and range."""
    bridge, defaults = services.bridge, services.options.request_defaults
    params = bridge.module.GenerationParams()
    for field in FIELDS:
        value = read_field(field, body, defaults)
        if value is not None and field.target is not None:
            setattr(params, field.target, value)
    if (n_probs := _read_probabilities(body, defaults)) is not None:
        params.n_probs = n_probs
    if (found := lookup(body, ("stop",)) or lookup(defaults, ("stop",))) is not None:
        params.stop = stop_strings(found[1])
    if (found := lookup(body, ("lora",))) is not None:
        params.lora = adapter_scales(found[1])
    settings = services.options.engine.get("speculation", {})
    read_speculation(params.speculation, body, settings, bridge.speculation)
    read_loop_guard(params.loop_guard, body, defaults)

    def plain(text: str) -> list[int]:
        return bridge.tokenize(text, add_special=False, parse_special=False)

    def with_specials(text: str) -> list[int]:
        return bridge.tokenize(text, add_special=False, parse_special=True)

    read_sampling(params.sampling, body, defaults, plain, bridge.meta.n_vocab)
    read_constraints(params.sampling, body, defaults, bridge.module, with_specials)
    return params


async def read_generation_off_loop(body: Mapping[str, Any], services: Services) -> Any:
    """`read_generation`, beside the event loop when there is much to read (12 §1.8).

    A schema or a grammar that looks small can stand for a large set of rules.
    """
    beside = is_large(body) or any(body.get(name) for name in ("json_schema", "grammar"))
    return await off_loop_if(beside, read_generation, body, services)


def read_request(body: Mapping[str, Any], services: Services) -> RequestFields:
    """The fields of the whole request. Raises ApiError."""
    defaults = services.options.request_defaults

    def read(field: Field, otherwise: Any) -> Any:
        value = read_field(field, body, defaults)
        return otherwise if value is None else value

    verbose = read(Field(("verbose",), "boolean"), False)
    return RequestFields(
        n_choices=read(Field(("n_cmpl", "n"), "integer", low=1, high=services.bridge.n_slots), 1),
        id_slot=read(Field(("id_slot",), "integer", low=INT32_MIN, high=INT32_MAX), -1),
        ping_interval_s=read(
            Field(("sse_ping_interval",), "integer", low=-1, high=INT32_MAX),
            services.options.sse_ping_interval_s,
        ),
        include_usage=_includes_usage(body),
        verbose=verbose,
        engine_report=verbose or read(Field(("engine_report",), "boolean"), False),
        response_fields=_response_fields(body),
        ignored_type=ignored_type_reason(body, services.bridge.speculation),
    )


def adapter_scales(value: Any) -> dict[int, float]:
    """Scales by adapter, of `[{"id": 0, "scale": 0.5}]`; the core knows which ids there are."""
    form = "must be an array of objects with 'id' and 'scale'"
    if not isinstance(value, list | tuple):
        raise fault("lora", form)
    if len(value) > MAX_ADAPTERS:
        raise fault("lora", f"{len(value)} entries; at most {MAX_ADAPTERS} are allowed")
    if not all(isinstance(entry, Mapping) for entry in value):
        raise fault("lora", form)
    scales: dict[int, float] = {}
    for entry in value:
        number, scale = entry.get("id"), entry.get("scale")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= INT32_MAX:
            raise fault("lora", "every 'id' must be the number of an adapter of this server")
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not abs(scale) <= FLOAT32_MAX:
            raise fault("lora", "every 'scale' must be a finite number")
        scales[number] = float(scale)
    return scales


def _read_probabilities(body: Mapping[str, Any], defaults: Mapping[str, Any]) -> int | None:
    """Alternatives for each token. `logprobs` true or false is a chat's switch, read with its messages."""
    plain = {name: body.get(name) for name in PROBABILITY_NAMES}
    if isinstance(plain["logprobs"], bool):
        del plain["logprobs"]
    value = read_field(_PROBABILITIES, plain, defaults)
    return None if value is None else max(0, int(value))


def _includes_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, Mapping):
        raise wrong_type("stream_options", "object", options)
    return bool(read_field(Field(("include_usage",), "boolean"), options, {}))


def _response_fields(body: Mapping[str, Any]) -> tuple[str, ...]:
    names = body.get("response_fields")
    if names is None:
        return ()
    if not isinstance(names, list | tuple):
        raise wrong_type("response_fields", "array of strings", names)
    if len(names) > MAX_RESPONSE_FIELDS:
        raise fault("response_fields", f"{len(names)} names; at most {MAX_RESPONSE_FIELDS} are allowed")
    for name in names:
        if not isinstance(name, str):
            raise wrong_type("response_fields", "array of strings", name)
        if len(name) > MAX_RESPONSE_FIELD_NAME:
            raise fault(
                "response_fields",
                f"a name of {len(name)} characters; each may have at most {MAX_RESPONSE_FIELD_NAME}",
            )
    return tuple(dict.fromkeys(names))
