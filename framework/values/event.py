"""One entry of the event log (13 §6, kinds and fields: 07 §14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framework.values.reason import Reason


@dataclass(frozen=True)
class Event:
    """Something that happened. `id` grows with every event, over all lives of the manager."""

    id: int
    at: datetime
    kind: str
    message: str
    model: str | None = None
    replica: int | None = None
    reason: Reason | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
