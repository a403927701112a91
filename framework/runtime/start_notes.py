"""What the log of a start that ended well says was not granted. Pure; called by runtime.ladder."""

from __future__ import annotations

import re
from collections.abc import Sequence

from framework.runtime.allocation import Allocation, refused_allocation
from framework.values.reason import Reason
from framework.values.units_text import size

NO_PIPELINE = re.compile(
    r"(?:\d[\d.]* [A-Z] )?\w{1,80}: compute buffer allocation failed, retrying without pipeline parallelism"
)


def start_notes(lines: Sequence[str]) -> tuple[Reason, ...]:
    """Degradations that only the log tells; none for an ordinary start."""
    for number, line in enumerate(lines):
        if NO_PIPELINE.fullmatch(line):
            return (_pipeline_parallel_off(refused_allocation(lines[:number])),)
    return ()


def _pipeline_parallel_off(refused: Allocation | None) -> Reason:
    where = f" {size(refused.bytes)} were refused on {refused.device}." if refused else ""
    return Reason(
        "pipeline_parallel_off",
        f"The engine works its devices one after the other: buffers for doing it at once did not fit.{where}",
        "Use a smaller batch.physical or a shorter context to get the faster way back.",
        "warning",
        {"device": refused.device, "refused_bytes": refused.bytes} if refused else {},
    )
