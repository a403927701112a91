"""Words for the tries of the recovery ladder (06 §12.2), for events and pages."""

from __future__ import annotations

from collections.abc import Mapping

RUNGS: Mapping[str, str] = {
    "S": "as planned",
    "P": "on another port",
    "U": "without a flag that the engine refused",
}
"""What was changed before the try."""
OUTCOMES: Mapping[str, str] = {
    "healthy": "became ready",
    "exited": "ended by itself",
    "timeout": "was not ready in time",
    "port_taken": "found its port taken",
    "incomplete": "became ready without a device that it was to use",
    "cancelled": "was cancelled",
}
