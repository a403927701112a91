"""`timings` of answers (15 §6, 12 §6.4). Called by every flavour and by the list of slots."""

from __future__ import annotations

from typing import Any, Protocol

from framework.nativeserver.core import Timings
from framework.nativeserver.core_speculation import SpeculationReport


class Timed(Protocol):
    """A result or a slot."""

    timings: Timings
    speculation: SpeculationReport


def timings_json(timed: Timed) -> dict[str, Any]:
    """Milliseconds, and tokens a second; 0 where nothing was evaluated or generated."""
    timings, report = timed.timings, timed.speculation
    shape = {
        "cache_n": timings.cache_n,
        "prompt_n": timings.prompt_n,
        "prompt_ms": timings.prompt_ms,
        "prompt_per_token_ms": timings.prompt_per_token_ms,
        "prompt_per_second": timings.prompt_per_second,
        "predicted_n": timings.predicted_n,
        "predicted_ms": timings.predicted_ms,
        "predicted_per_token_ms": timings.predicted_per_token_ms,
        "predicted_per_second": timings.predicted_per_second,
    }
    if report.drafted > 0:
        shape |= {
            "draft_n": report.drafted,
            "draft_n_accepted": report.accepted,
            "draft_steps": report.drafts,
            "draft_depth": report.depth,
        }
    return shape
