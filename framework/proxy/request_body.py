"""The body that goes to an instance: defaults, limits, manifest rules, nothing of ours (08 §9). Pure.

Built anew for every attempt, since the default of `max_tokens` belongs to the instance (08 §5.7). Values are
not judged here, save what an engine does not survive: it knows its ranges and its refusal names them (15 §5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.proxy.engine_hazards import refuse_hazards
from framework.proxy.reasoning_request import KWARGS, template_arguments
from framework.values.reasoning import NO_REASONING, ReasoningFacts
from framework.values.request import LiveSettings

SAMPLING_DEFAULTS: Mapping[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.95,
    "top_k": 20,
    "min_p": 0.01,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
}
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "max_tokens": ("max_completion_tokens", "max_output_tokens", "max_tokens", "n_predict"),
    "repeat_penalty": ("repeat_penalty", "repetition_penalty"),
    "stop": ("stop", "stop_sequences"),
}
"""Names of one setting, the one that wins first."""
CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}
# 08 §9.4: extensions of the proxy, and the reasoning switches that only its own mapping may send.
NEVER_FORWARDED = frozenset(
    {"tool_loop", "image", "images", "reasoning_output", "promote_reasoning_only", "extract_inline_reasoning"}
    | {"reasoning_effort", "enable_thinking", "preserve_thinking"}
)


@dataclass(frozen=True)
class BodyStyle:
    """How the bodies of one family of routes differ."""

    spelled: Mapping[str, str] = field(default_factory=dict)
    """Names of this family for settings that have another name here."""
    limits_tokens: bool = True
    """Whether the context is the limit of an answer that asks for none; else the engine decides."""
    wants_usage: bool = True
    """Whether the counts of a stream have to be asked for."""


CHAT_BODY = BodyStyle()
RESPONSES_BODY = BodyStyle({"max_tokens": "max_output_tokens"}, wants_usage=False)
MESSAGES_BODY = BodyStyle({"stop": "stop_sequences"}, wants_usage=False)
# An infill keeps room for its answer: a limit of the whole context would leave none for what is around.
ENGINE_BODY = BodyStyle({"max_tokens": "n_predict"}, limits_tokens=False, wants_usage=False)


def generation_body(
    asked: Mapping[str, Any],
    live: LiveSettings,
    style: BodyStyle,
    *,
    model_id: str,
    slot_context: int,
    max_tokens_fallback: int,
    reasoning: ReasoningFacts = NO_REASONING,
) -> dict[str, Any]:
    """Body of a generation, always as a stream, with usage where that has to be asked for (08 §3.3, §7.5).

    `slot_context` is in tokens, 0 when unknown. Order of 08 §9: request, model's defaults, own defaults,
    `max_tokens`, then `drop` and `force`; what is left of wishes about reasoning becomes template arguments.
    Raises ProxyError `invalid_body` for wishes of a wrong type, and for what would break an engine.
    """
    fields = {**canonical(live.request_defaults), **canonical(asked)}
    if live.sampling_defaults == "paddock":
        fields = {**SAMPLING_DEFAULTS, **fields}
    if style.limits_tokens:
        fields.setdefault("max_tokens", slot_context or max_tokens_fallback)
    for name in live.request_drop:
        fields.pop(CANONICAL.get(name, name), None)
    fields.update(canonical(live.request_force))
    if arguments := template_arguments(fields, reasoning):
        fields[KWARGS] = arguments
    _tidy(fields)
    refuse_hazards(fields)
    for name, spelling in style.spelled.items():
        if name in fields:
            fields[spelling] = fields.pop(name)
    body = {**fields, "model": model_id, "stream": True}
    if style.wants_usage:
        options = fields.get("stream_options")
        body["stream_options"] = {
            **(options if isinstance(options, Mapping) else {}),
            "include_usage": True,
        }
    return body


def whole_body(asked: Mapping[str, Any], *, model_id: str) -> dict[str, Any]:
    """Body of a call that generates nothing: as asked, under the instance's own model name."""
    kept = {n: v for n, v in asked.items() if n not in NEVER_FORWARDED and v is not None}
    return {**kept, "model": model_id}


def canonical(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` that have a value, each setting under its one name."""
    found = {name: value for name, value in fields.items() if value is not None}
    for name, spellings in SPELLINGS.items():
        values = [found.pop(spelling) for spelling in spellings if spelling in found]
        if values:
            found[name] = values[0]
    return found


def _tidy(fields: dict[str, Any]) -> None:
    for name in NEVER_FORWARDED & fields.keys():
        del fields[name]
    if fields.get("stop") in ("", []):
        del fields["stop"]
    top_k = fields.get("top_k")
    if isinstance(top_k, int | float) and top_k < 0:
        fields["top_k"] = 0
