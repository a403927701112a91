"""Prompts as clients write them, as lists of token ids (12 §4.1). Called by the routes that take a prompt.

A text, a list of token ids, a mixed list of both, an object {`prompt_string`}, or a list of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import is_large, off_loop_if

FORMS = (
    "must be a string, a list of token ids, an object with 'prompt_string', a mixed list of strings and token"
    " ids, or a list of these"
)


async def read_inputs(
    value: Any, bridge: EngineBridge, *, name: str = "prompt", most: int
) -> list[list[int]]:
    """The tokens of each input; at most `most` of them. Raises ApiError for any other form of value."""
    prompts = split_prompts(value, name)
    if len(prompts) > most:
        raise ApiError(
            "invalid_request",
            f'"{name}" has {len(prompts)} inputs; at most {most} are allowed in one request',
        )
    return await off_loop_if(
        is_large(prompts), lambda: [tokens_of(prompt, bridge, name) for prompt in prompts]
    )


async def tokenize_text(
    text: str, bridge: EngineBridge, *, add_special: bool = False, parse_special: bool = False
) -> list[int]:
    """Tokens of one text, beside the event loop when it is long."""
    return await off_loop_if(
        is_large(text), bridge.tokenize, text, add_special=add_special, parse_special=parse_special
    )


def split_prompts(value: Any, name: str) -> list[Any]:
    """One entry for each input. A list with a token id in it is one input, any other list holds several."""
    if not isinstance(value, list):
        return [value]
    if not value:
        raise ApiError("invalid_request", f'"{name}" must not be empty')
    return [value] if any(_is_number(part) for part in value) else value


def tokens_of(prompt: Any, bridge: EngineBridge, name: str) -> list[int]:
    """Tokens of one input; texts with special tokens parsed, and added before the first part."""
    if isinstance(prompt, Mapping) and isinstance(prompt.get("prompt_string"), str):
        if prompt.get("multimodal_data"):
            raise ApiError(
                "invalid_request", "Multimodal data provided, but model does not support multimodal requests"
            )
        return bridge.tokenize(prompt["prompt_string"], add_special=True, parse_special=True)
    if isinstance(prompt, str):
        return bridge.tokenize(prompt, add_special=True, parse_special=True)
    if not isinstance(prompt, list):
        raise ApiError("invalid_request", f'"{name}" {FORMS}')
    return _mixed_tokens(prompt, bridge, name)


def _mixed_tokens(parts: Sequence[Any], bridge: EngineBridge, name: str) -> list[int]:
    n_vocab = bridge.meta.n_vocab
    tokens: list[int] = []
    for place, part in enumerate(parts):
        if isinstance(part, str):
            tokens += bridge.tokenize(part, add_special=place == 0, parse_special=True)
        elif isinstance(part, bool) or not isinstance(part, int):
            raise ApiError("invalid_request", f'"{name}" {FORMS}')
        elif not 0 <= part < n_vocab:
            raise ApiError(
                "invalid_request",
                f"Prompt contains invalid tokens: {part}; this model has the ids 0 to {n_vocab - 1}",
            )
        else:
            tokens.append(part)
    return tokens


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
