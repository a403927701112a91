"""What the extra arguments of a model say (06 §5.3-5.4). Pure; called by planning and by the comparison.

Readers expect the one spelling that the manifest gives such arguments. They stand last on the line, so the
last occurrence of a flag is what the engine will do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
TOKEN_COUNT = re.compile(r"[0-9]{1,12}")

CONTEXT_FLAGS = ("-c", "--ctx-size")
HUB_FLAGS = frozenset({"--spec-draft-hf", "-hfd", "-hfrd", "--hf-repo-draft", "-hfv", "-hfrv", "--hf-repo-v"})
FLASH_FLAGS = ("-fa", "--flash-attn")
K_TYPE_FLAGS = ("-ctk", "--cache-type-k")
V_TYPE_FLAGS = ("-ctv", "--cache-type-v")
RPC_FLAG, RPC_VARIABLE = "--rpc", "LLAMA_ARG_RPC"

PROMPT_CACHE_WORDS = {"--cache-prompt": True, "--no-cache-prompt": False}
PROMPT_CACHE_VARIABLE, NO_PROMPT_CACHE_VARIABLE = "LLAMA_ARG_CACHE_PROMPT", "LLAMA_ARG_NO_CACHE_PROMPT"

# llama.cpp's own words; it compares them with case (03 §2.1).
TRUE_WORDS = frozenset({"on", "enabled", "true", "1"})
FALSE_WORDS = frozenset({"off", "disabled", "false", "0"})
AUTO_WORDS = frozenset({"auto", "-1"})


def context(args: Sequence[str], n_ctx: int) -> int:
    """Tokens asked for: the last context flag with a number, else the manifest's `n_ctx`. 0 is automatic."""
    numbers = [int(value) for value in values_of(args, CONTEXT_FLAGS) if TOKEN_COUNT.fullmatch(value)]
    return numbers[-1] if numbers else n_ctx


def names_hub_repo(args: Collection[str]) -> bool:
    """Whether the engine will go to a model hub itself and may need the hub's token (06 §7.1)."""
    return not HUB_FLAGS.isdisjoint(args)


def cache_type(args: Sequence[str], flags: Collection[str]) -> str | None:
    """The last cache type given for one axis, lower-cased; None when there is none."""
    values = [value.strip().lower() for value in values_of(args, flags) if value.strip()]
    return values[-1] if values else None


def flash_attention(args: Sequence[str], default: str) -> str:
    """`on`, `off` or `auto` as the engine will read it (03 §2.8): arguments over `default`, which the line
    always holds, so that no variable has a say."""
    state = default
    for value in values_of(args, FLASH_FLAGS):
        state = _switch(value) or ("on" if not value else state)
    return state


def caches_prompts(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a slot goes on with what it has read of a prompt (06 §5.3): by the last flag, then by
    variables, of which the one that switches it off does so with any value."""
    for token in reversed(args):
        if token in PROMPT_CACHE_WORDS:
            return PROMPT_CACHE_WORDS[token]
    return NO_PROMPT_CACHE_VARIABLE not in env and env.get(PROMPT_CACHE_VARIABLE) not in FALSE_WORDS


def values_of(args: Sequence[str], flags: Collection[str]) -> Iterator[str]:
    """Values given to `flags`, in order; empty for one without a value.

    A token that starts with `-` and is no number is not taken as a value, so that a forgotten value does
    not swallow the next flag (03 §2.1).
    """
    for place, arg in enumerate(args):
        if arg in flags:
            following = args[place + 1] if place + 1 < len(args) else ""
            yield "" if following.startswith("-") and not NUMBER.fullmatch(following) else following


def _switch(word: str) -> str | None:
    if word in TRUE_WORDS:
        return "on"
    if word in FALSE_WORDS:
        return "off"
    return "auto" if word in AUTO_WORDS else None
