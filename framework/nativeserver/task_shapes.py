"""Parameters of a generation as JSON, short and long (12 §15.3, 15 §6). Pure.

Called by slots, props and the flavours that show `generation_settings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# As llama-server numbers them.
TRIGGER_TYPES = {"token": 0, "word": 1, "pattern": 2, "pattern_full": 3}
SEED_BITS = 0xFFFF_FFFF
WHOLE_CONTEXT = -1
NO_TYPE = "none"


@dataclass(frozen=True)
class ChatShape:
    """How the text of a reply is read; the core knows nothing of it."""

    chat_format: str = "Content-only"
    reasoning_format: str = "none"
    reasoning_in_content: bool = False
    generation_prompt: str = ""


PLAIN = ChatShape()


def short_params(
    params: Any, *, n_ctx: int | None = None, chat: ChatShape = PLAIN, drafters: Sequence[str] = ()
) -> dict[str, Any]:
    """GenerationParams in the order of llama-server.

    `n_ctx` resolves windows of the whole context; `drafters` are the types of the command line.
    """
    sampling = params.sampling
    return {
        "seed": sampling.seed & SEED_BITS,
        "temperature": sampling.temperature,
        "dynatemp_range": sampling.dynatemp_range,
        "dynatemp_exponent": sampling.dynatemp_exponent,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "top_n_sigma": sampling.top_n_sigma,
        "xtc_probability": sampling.xtc_probability,
        "xtc_threshold": sampling.xtc_threshold,
        "typical_p": sampling.typical_p,
        "repeat_last_n": _window(sampling.repeat_last_n, n_ctx),
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "dry_multiplier": sampling.dry_multiplier,
        "dry_base": sampling.dry_base,
        "dry_allowed_length": sampling.dry_allowed_length,
        "dry_penalty_last_n": _window(sampling.dry_penalty_last_n, n_ctx),
        "mirostat": sampling.mirostat,
        "mirostat_tau": sampling.mirostat_tau,
        "mirostat_eta": sampling.mirostat_eta,
        "adaptive_target": sampling.adaptive_target,
        "adaptive_decay": sampling.adaptive_decay,
        **_limits(params),
        "chat_format": chat.chat_format,
        "reasoning_format": chat.reasoning_format,
        "reasoning_in_content": chat.reasoning_in_content,
        "generation_prompt": chat.generation_prompt,
        "samplers": list(sampling.samplers),
        "speculative.types": _types(params, drafters),
        "timings_per_token": params.timings_per_token,
        "post_sampling_probs": params.post_sampling_probs,
        "backend_sampling": False,
        "lora": [{"id": number, "scale": scale} for number, scale in sorted((params.lora or {}).items())],
    }


def long_params(
    params: Any, *, n_ctx: int | None = None, chat: ChatShape = PLAIN, drafters: Sequence[str] = ()
) -> dict[str, Any]:
    """The short form and the texts that a request may carry."""
    sampling = params.sampling
    return {
        **short_params(params, n_ctx=n_ctx, chat=chat, drafters=drafters),
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
        "stop": list(params.stop),
        "logit_bias": [{"bias": bias, "token": token} for token, bias in sampling.logit_bias],
        "grammar": sampling.grammar,
        "grammar_lazy": sampling.grammar_lazy,
        "grammar_triggers": [_trigger(trigger) for trigger in sampling.grammar_triggers],
        "preserved_tokens": list(sampling.preserved_tokens),
    }


def _limits(params: Any) -> dict[str, Any]:
    return {
        "max_tokens": params.n_predict,
        "n_predict": params.n_predict,
        "n_keep": params.n_keep,
        "n_discard": params.n_discard,
        "ignore_eos": params.sampling.ignore_eos,
        "stream": params.stream,
        "n_probs": params.n_probs,
        "min_keep": params.sampling.min_keep,
    }


def _types(params: Any, drafters: Sequence[str]) -> str:
    """Behind a leading `none`, as llama-server shows them, whether they run or not (15 §3)."""
    asked = params.speculation.type
    if asked == NO_TYPE:
        return NO_TYPE
    return ",".join((NO_TYPE, *([asked] if asked else drafters)))


def _window(length: int, n_ctx: int | None) -> int:
    return n_ctx if length == WHOLE_CONTEXT and n_ctx is not None else length


def _trigger(trigger: Any) -> dict[str, Any]:
    shape = {"type": TRIGGER_TYPES[trigger.kind], "value": trigger.value}
    return {**shape, "token": trigger.token} if trigger.kind == "token" else shape
