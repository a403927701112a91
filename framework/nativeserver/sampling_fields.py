"""Request fields that say how tokens are chosen (12 §5.2). Called by nativeserver.fields.

Numbers that llama-server silently brings into their range are brought there here too; those it refuses are
refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framework.nativeserver.constraint_fields import refuse_many_texts, short_text
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
from framework.nativeserver.task_shapes import SEED_BITS

Tokenize = Callable[[str], list[int]]
MAX_PROBABILITIES = 1024
"""Alternatives of one token: every one is text in the answer, for every token."""
MAX_BIASES = 65_536
MAX_BREAKERS_BYTES = 65_536
MAX_SAMPLERS = 64
"""There are fewer kinds; a chain may name one more than once."""
ANY_SEED = -1


def _real(name: str, low: float = -FLOAT32_MAX, high: float = FLOAT32_MAX, **options: Any) -> Field:
    return Field((name,), "number", name, low, high, **options)


def _whole(name: str, low: int, high: int = INT32_MAX, **options: Any) -> Field:
    return Field((name,), "integer", name, low, high, **options)


FIELDS: tuple[Field, ...] = (
    _real("temperature", 0.0, outside="clamp"),
    _real("dynatemp_range"),
    _real("dynatemp_exponent"),
    _whole("top_k", 0, outside="clamp"),
    _real("top_p", 0.0, 1.0, outside="clamp"),
    _real("min_p", 0.0, 1.0, outside="clamp"),
    _real("top_n_sigma"),
    _real("typical_p"),
    _real("xtc_probability", 0.0, 1.0, outside="clamp"),
    _real("xtc_threshold", 0.0, 1.0, outside="clamp"),
    _whole("repeat_last_n", -1),
    _real("repeat_penalty"),
    _real("presence_penalty"),
    _real("frequency_penalty"),
    _real("dry_multiplier"),
    # Below 1 the penalty would shrink with the length of what repeats: llama-server takes its default.
    _real("dry_base", 1.0, outside="default"),
    _whole("dry_allowed_length", 0),
    _whole("dry_penalty_last_n", -1),
    _whole("mirostat", 0, 2, outside="clamp"),
    _real("mirostat_tau"),
    _real("mirostat_eta"),
    _real("adaptive_target"),
    _real("adaptive_decay", 0.0, 0.99),
    _whole("min_keep", 0),
    _whole("seed", -SAFE_INTEGER, SAFE_INTEGER),
    Field(("ignore_eos",), "boolean", "ignore_eos"),
    # llama-server can sample on the device; this engine samples on the host, with the same result.
    Field(("backend_sampling",), "boolean"),
)

SAMPLER_LETTERS = {
    "d": "dry",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "s": "top_n_sigma",
    "m": "min_p",
    "t": "temperature",
    "x": "xtc",
    "i": "infill",
    "e": "penalties",
    "a": "adaptive_p",
}
"""The letters of the short form."""
_SAMPLER_NAMES = frozenset(SAMPLER_LETTERS.values())


def read_sampling(
    sampling: Any, body: Mapping[str, Any], defaults: Mapping[str, Any], tokenize: Tokenize, n_vocab: int
) -> None:
    """Sets the attributes of SamplingParams that the body or the defaults have. Raises ApiError."""
    for field in FIELDS:
        value = read_field(field, body, defaults)
        if value is not None and field.target is not None:
            setattr(sampling, field.target, wrapped_seed(value) if field.target == "seed" else value)
    if (samplers := _either(body, defaults, "samplers")) is not None:
        sampling.samplers = sampler_names(samplers)
    if (found := lookup(body, ("dry_sequence_breakers",))) is not None:
        sampling.dry_sequence_breakers = sequence_breakers(found[1])
    elif (given := lookup(defaults, ("dry_sequence_breakers",))) is not None:
        # `--dry-sequence-breaker none` leaves none.
        sampling.dry_sequence_breakers = list(given[1])
    if (biases := _either(body, defaults, "logit_bias")) is not None:
        sampling.logit_bias = logit_biases(biases, tokenize, n_vocab)


def _either(body: Mapping[str, Any], defaults: Mapping[str, Any], name: str) -> Any:
    found = lookup(body, (name,)) or lookup(defaults, (name,))
    return None if found is None else found[1]


def wrapped_seed(seed: int) -> int:
    """A start value as 32 bits, or -1 for a random one."""
    return seed if seed == ANY_SEED else seed & SEED_BITS


def sampler_names(value: Any) -> list[str]:
    """The chain: a list of names, or a text of letters. Unknown ones are left out, as llama-server does."""
    if isinstance(value, str):
        value = [SAMPLER_LETTERS[letter] for letter in value if letter in SAMPLER_LETTERS]
    if not isinstance(value, Sequence):
        raise wrong_type("samplers", "array or string", value)
    if len(value) > MAX_SAMPLERS:
        raise fault("samplers", f"{len(value)} samplers; at most {MAX_SAMPLERS} are allowed")
    for name in value:
        if not isinstance(name, str):
            raise wrong_type("samplers", "array of strings", name)
    return [name for name in value if name in _SAMPLER_NAMES]


def sequence_breakers(value: Any) -> list[str]:
    """Texts at which a DRY repetition ends."""
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise fault("dry_sequence_breakers", "must be an array of strings")
    if not value:
        raise fault(
            "dry_sequence_breakers", "must have at least one string; dry_multiplier 0 switches DRY off"
        )
    if sum(len(text) for text in value) > MAX_BREAKERS_BYTES:
        raise fault("dry_sequence_breakers", f"must be at most {MAX_BREAKERS_BYTES} characters together")
    return list(value)


def logit_biases(value: Any, tokenize: Tokenize, n_vocab: int) -> list[tuple[int, float]]:
    """Pairs of token and bias: of a list of pairs, or of an object; a text stands for all its tokens.

    Ids outside the vocabulary are left out, as llama-server does.
    """
    if isinstance(value, Mapping | list | tuple) and len(value) > MAX_BIASES:
        raise fault("logit_bias", f"{len(value)} entries; at most {MAX_BIASES} are allowed")
    pairs = _bias_pairs(value)
    refuse_many_texts("logit_bias", (key for key, _ in pairs if isinstance(key, str)))
    biases: list[tuple[int, float]] = []
    for key, bias in pairs:
        amount = _bias_amount(bias)
        biases += [(token, amount) for token in _bias_tokens(key, tokenize) if 0 <= token < n_vocab]
        if len(biases) > MAX_BIASES:
            raise fault("logit_bias", f"more than {MAX_BIASES} tokens have a bias")
    return biases


def _bias_pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        # Keys of an object are texts; a number in one is an id.
        return [(int(key) if _is_id(key) else key, bias) for key, bias in value.items()]
    if not isinstance(value, list | tuple):
        raise wrong_type("logit_bias", "array or object", value)
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise fault("logit_bias", "every entry must be a pair [token id or text, bias or false]")
    return [(pair[0], pair[1]) for pair in value]


def _is_id(key: str) -> bool:
    digits = key.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= len(str(INT32_MIN))


def _bias_tokens(key: Any, tokenize: Tokenize) -> list[int]:
    if isinstance(key, str):
        return tokenize(short_text("logit_bias", key))
    if isinstance(key, bool) or not isinstance(key, int):
        raise fault("logit_bias", "a token must be an id or a text")
    return [key]


def _bias_amount(bias: Any) -> float:
    if bias is False:
        return -math.inf
    if isinstance(bias, bool) or not isinstance(bias, int | float):
        raise fault("logit_bias", "a bias must be a number, or false to forbid the token")
    if not abs(bias) <= FLOAT32_MAX:
        raise fault("logit_bias", "a bias must be a finite number")
    return float(bias)
