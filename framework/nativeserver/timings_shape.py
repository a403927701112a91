"""`timings` of answers (15 §6). Called by every flavour."""

from __future__ import annotations

from typing import Any

from framework.nativeserver.core import Timings


def timings_json(timings: Timings) -> dict[str, Any]:
    """Milliseconds, and tokens a second; 0 where nothing was evaluated or generated."""
    return {
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
