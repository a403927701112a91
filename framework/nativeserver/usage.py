"""Counts of tokens that a request is told it used (12 §4.3, §7.3), and the engine's report (12 §6.5).

Called by every flavour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.nativeserver.core import Result
from framework.nativeserver.speculation_shape import loop_guard_json, speculation_json


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
            "accepted_prediction_tokens": sum(final.speculation.accepted for final in finals),
        },
    }


def engine_report(final: Result, ignored_type: str = "") -> dict[str, Any]:
    """What the engine did for one choice; `ignored_type` as of RequestFields."""
    return {
        "speculation": speculation_json(final.speculation, ignored_type),
        "loop_guard": loop_guard_json(final.loop_guard),
        "stop_detail": final.stop_detail,
        "reasoning_output_tokens": final.n_reasoning_tokens,
        "visible_output_tokens": final.loop_guard.visible_tokens,
    }
