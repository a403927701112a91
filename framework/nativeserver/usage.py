"""Counts of tokens that a request is told it used (12 §4.3, §7.3), and the engine's report (12 §6.5).

Called by every flavour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.nativeserver.core import Result
from framework.nativeserver.speculation_off import loop_guard_off, speculation_off


def usage_json(finals: Sequence[Result], *, n_inputs: int = 1) -> dict[str, Any]:
    """`usage` of final results in task order: each prompt once, the tokens of every choice."""
    n_choices = max(1, len(finals) // n_inputs)
    parents = finals[::n_choices]
    n_prompt = sum(final.n_prompt_tokens for final in parents)
    n_completion = sum(final.n_decoded for final in finals)
    return {
        "completion_tokens": n_completion,
        "prompt_tokens": n_prompt,
        "total_tokens": n_prompt + n_completion,
        "prompt_tokens_details": {"cached_tokens": sum(final.n_prompt_cached for final in parents)},
        "completion_tokens_details": {
            "reasoning_tokens": sum(final.n_reasoning_tokens for final in finals),
            "accepted_prediction_tokens": 0,
        },
    }


def visible_tokens(final: Result) -> int:
    """Tokens that were no reasoning."""
    return max(0, final.n_decoded - final.n_reasoning_tokens)


def engine_report(final: Result, speculation: tuple[str, ...]) -> dict[str, Any]:
    """What the engine did for one choice; `speculation` are the types that were asked for."""
    return {
        "speculation": speculation_off(speculation),
        "loop_guard": loop_guard_off(final.n_reasoning_tokens, visible_tokens(final)),
        "stop_detail": final.stop_detail,
        "reasoning_output_tokens": final.n_reasoning_tokens,
        "visible_output_tokens": visible_tokens(final),
    }
