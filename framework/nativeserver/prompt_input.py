"""Prompts as clients write them, as lists of token ids (12 §4.1). Called by the routes that take a prompt.

A text, a list of token ids, a mixed list of both, an object {`prompt_string`}, or a list of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import Receive

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.text_work import AT_ONCE

SURE_TOKEN = 64
"""Characters of a prompt for each token of the context that are always looked at: prose has four."""
FORMS = (
    "must be a string, a list of token ids, an object with 'prompt_string', a mixed list of strings and token"
    " ids, or a list of these"
)


async def read_inputs(
    receive: Receive, value: Any, bridge: EngineBridge, *, name: str = "prompt", most: int
) -> list[list[int]]:
    """The tokens of each input; at most `most` of them. `receive` is of the client that waits for them.

    Raises ApiError for any other form of value and for what can't fit, ClientGone when the client leaves.
    """
    prompts, n_chars = await off_loop_if(is_large(value), _measured, value, name, most)
    if n_chars <= AT_ONCE:
        # Ids alone, perhaps very many of them.
        return await off_loop_if(is_large(prompts), _all_tokens, prompts, bridge, name)
    return await bridge.text_work.run(receive, n_chars, _all_tokens, prompts, bridge, name)


async def tokenize_prompt(receive: Receive, text: str, bridge: EngineBridge) -> list[int]:
    """Tokens of a rendered prompt, with special ones. Raises as `read_inputs`."""
    (tokens,) = await bridge.text_work.run(receive, len(text), _all_tokens, [text], bridge, "messages")
    return tokens


async def count_text(receive: Receive, text: str, bridge: EngineBridge) -> int:
    """How many tokens a text has as a prompt, though it may be too long to be one."""
    tokens = await bridge.text_work.run(
        receive, len(text), bridge.tokenize, text, add_special=True, parse_special=True
    )
    return len(tokens)


def text_length(value: Any) -> int:
    """Characters of all texts in prompts."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return text_length(value.get("prompt_string"))
    if isinstance(value, list):
        return sum(len(part) if isinstance(part, str) else text_length(part) for part in value)
    return 0


def refuse_endless(n_chars: int, bridge: EngineBridge) -> None:
    """Raises ApiError for a prompt whose length alone says that it fits no slot; says so without its tokens.

    No text has fewer tokens than it has lengths of the longest one. Some tokenisers drop spaces and make one
    token of an unknown word: hence the allowance.
    """
    n_ctx = bridge.facts.n_ctx_slot
    if n_chars <= n_ctx * SURE_TOKEN:
        return
    longest = max(bridge.longest_token, SURE_TOKEN)
    if n_chars > n_ctx * longest:
        n_tokens = -(-n_chars // longest)
        raise ApiError(
            "exceed_context_size",
            f"The prompt has at least {n_tokens} tokens in {n_chars} characters, and the context of a slot"
            f" holds {n_ctx}; shorten it, or raise --ctx-size",
            {"n_prompt_tokens": n_tokens, "n_ctx": n_ctx},
        )


def _measured(value: Any, name: str, most: int) -> tuple[list[Any], int]:
    """The prompts, and how long their texts are together."""
    prompts = split_prompts(value, name)
    if len(prompts) > most:
        raise ApiError(
            "invalid_request",
            f'"{name}" has {len(prompts)} inputs; at most {most} are allowed in one request',
        )
    return prompts, text_length(prompts)


def _all_tokens(prompts: Sequence[Any], bridge: EngineBridge, name: str) -> list[list[int]]:
    for prompt in prompts:
        refuse_endless(text_length(prompt), bridge)
    return [tokens_of(prompt, bridge, name) for prompt in prompts]


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
