"""How long an engine says that an answer took it, and how fast it was by that (15 §6). Pure.

Speeds are the engine's own counts over its own clock (cases MD-03): never tokens over the time that a client
waited. Numbers that no engine can mean count as not told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framework.proxy.usage import count

MS_PER_S = 1000.0
# No answer takes longer, and no token comes faster.
MOST_S = 24 * 3600.0
LEAST_S_PER_TOKEN = 1e-6
# The engine's clock of generation starts with the first token: one alone takes it no time.
LEAST_TOKENS = {"prompt": 1, "predicted": 2}


@dataclass(frozen=True)
class EngineTimes:
    """What one answer took its engine; None is not told. `prompt_s` is for what the cache did not have."""

    prompt_s: float | None = None
    generation_s: float | None = None
    prompt_tokens_per_s: float | None = None
    generation_tokens_per_s: float | None = None


NOT_TOLD = EngineTimes()


def engine_times(timings: Mapping[str, Any] | None, choices: int = 1) -> EngineTimes:
    """The times in an engine's `timings`; those of one of several choices say nothing about the answer."""
    if timings is None or choices > 1:
        return NOT_TOLD
    prompt_s, prompt = _spent(timings, "prompt")
    generation_s, generated = _spent(timings, "predicted")
    return EngineTimes(prompt_s, generation_s, prompt, generated)


def _spent(timings: Mapping[str, Any], phase: str) -> tuple[float | None, float | None]:
    """Seconds and tokens a second of a phase."""
    tokens, milliseconds = count(timings, f"{phase}_n"), timings.get(f"{phase}_ms")
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None, None
    seconds = milliseconds / MS_PER_S
    if not math.isfinite(seconds) or not 0 < seconds <= MOST_S:
        return None, None
    if tokens is None or tokens < LEAST_TOKENS[phase] or seconds < LEAST_S_PER_TOKEN * tokens:
        return seconds, None
    return seconds, tokens / seconds
