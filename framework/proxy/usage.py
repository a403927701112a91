"""Token counts of an answer: filling gaps from the engine's timings (08 §12). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Counts = Mapping[str, Any]


def backfill(usage: Counts | None, timings: Counts | None) -> Counts | None:
    """`usage`, with counts that are missing or zero taken from `timings` on a copy (08 §12.1).

    Unchanged when there are no timings, when completion tokens are counted already, or when the timings
    count neither prompt nor completion.
    """
    predicted, processed = count(timings, "predicted_n"), count(timings, "prompt_n")
    if count(usage, "completion_tokens") or (predicted is None and processed is None):
        return usage
    filled: dict[str, Any] = dict(usage or {})
    if predicted is not None:
        filled["completion_tokens"] = predicted
    if not count(usage, "prompt_tokens") and processed is not None:
        cached = count(timings, "cache_n") or 0
        # `prompt_n` counts only what was processed now; the prompt also holds what the cache had.
        filled["prompt_tokens"] = processed + cached
        if cached > 0 and not filled.get("prompt_tokens_details"):
            filled["prompt_tokens_details"] = {"cached_tokens": cached}
    filled["total_tokens"] = (count(filled, "prompt_tokens") or 0) + (count(filled, "completion_tokens") or 0)
    return filled


def total(usages: Sequence[Counts], prompts: int = 1) -> dict[str, Any]:
    """Counts of an answer whose choices are counted one by one, each with its prompt: choices of one prompt
    share it. `prompts` is how many were asked, each with as many choices as any other."""
    choices = max(1, len(usages) // max(1, prompts))
    generated = sum(count(usage, "completion_tokens") or 0 for usage in usages)
    prompt = sum(count(usage, "prompt_tokens") or 0 for usage in usages) // choices
    found = {**usages[0], "prompt_tokens": prompt, "completion_tokens": generated}
    cached = [known for usage in usages if (known := cached_tokens(usage)) is not None]
    if cached:
        # What one choice read, the others may have had from the cache: none has had more than the prompt.
        found["prompt_tokens_details"] = {"cached_tokens": min(prompt, sum(cached) // choices)}
    return {**found, "total_tokens": prompt + generated}


def prompt_count(prompt: object) -> int:
    """How many prompts a body brings, as llama-server reads it: a list with numbers is one, in tokens."""
    if not isinstance(prompt, list) or any(isinstance(one, int | float) for one in prompt):
        return 1
    return max(1, len(prompt))


def cached_tokens(usage: Counts | None) -> int | None:
    """Prompt tokens that came out of the cache, None when not told."""
    details = (usage or {}).get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return cached if isinstance(cached, int) else None


def count(values: Counts | None, name: str) -> int | None:
    """A count by name, None when it is missing or no number."""
    value = (values or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
