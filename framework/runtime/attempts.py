"""Words for the tries of the recovery ladder (06 §12.2), for events and pages."""

from __future__ import annotations

from collections.abc import Mapping

RUNGS: Mapping[str, str] = {
    "S": "as planned",
    "P": "on another port",
    "U": "without a flag that the engine refused",
    "R1": "with layers divided over devices instead of tensors",
    "A": "with the engine's own fit step in place of the plan",
    "B": "without the engine's own fit step",
    "R2": "without flash attention",
    "R3": "without flash attention, to see whether it can generate then",
    "R4": "without what was to draft",
    "R5": "without the projector, for text only",
}
"""What was changed before the try."""
OUTCOMES: Mapping[str, str] = {
    "healthy": "became ready",
    "exited": "ended by itself",
    "timeout": "was not ready in time",
    "port_taken": "found its port taken",
    "incomplete": "became ready without a device that it was to use",
    "decode_failed": "became ready and could not generate",
    "cancelled": "was cancelled",
}
LABELS: Mapping[str, str] = {
    "P": "-port",
    "U": "-flag",
    "A": "-fit",
    "B": "-nofit",
    "R2": "-noflash",
    "R3": "-noflash-mtp",
    "R4": "-retry",
    "R5": "-text",
}
"""What the log files of the tries are marked with."""
