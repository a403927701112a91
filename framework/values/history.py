"""The last hour in steps, for readers: what each model did and device held. Made by telemetry.history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

STEP_S = 60
STEPS = 60
"""An hour; the newest step is the one that goes on."""


@dataclass(frozen=True)
class ModelStep:
    """One model in one step. What was not seen is None; of requests that is none, which is 0."""

    at: datetime
    """Where the step begins."""
    answered: int = 0
    """Requests that ended with a status below 400."""
    left: int = 0
    """Whose client went away, or that were cancelled."""
    refused: int = 0
    """With any other status below 500."""
    failed: int = 0
    first_token_p50_s: float | None = None
    first_token_p95_s: float | None = None
    queue_p95_s: float | None = None
    generation_tokens_per_s: float | None = None
    """Median of the answers, by the engine's clock."""
    prompt_tokens_per_s: float | None = None
    prompt_tokens: int = 0
    generated_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    busy_slots: int | None = None
    """Most that were busy at once, of all replicas."""
    slots: int | None = None
    waiting: int | None = None
    """Most requests that waited at once."""
    depth: float | None = None
    """Mean of what busy slots drafted at most in a step, in tokens; where the engine tells."""

    @property
    def requests(self) -> int:
        """All that ended."""
        return self.answered + self.left + self.refused + self.failed

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that were right, 0 to 1; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


@dataclass(frozen=True)
class ModelHistory:
    """The steps of one model, oldest first, as far back as anything is known."""

    model: str
    steps: tuple[ModelStep, ...]


def nothing_known(model: str) -> ModelHistory:
    """A history without steps."""
    return ModelHistory(model, ())


@dataclass(frozen=True)
class DeviceStep:
    """One device in one step: the most that was taken of it, by anybody, and by plans. None: not seen."""

    at: datetime
    used_bytes: int | None = None
    planned_bytes: int | None = None


@dataclass(frozen=True)
class DeviceHistory:
    """The steps of one device, oldest first; never none."""

    device: str
    total_bytes: int
    steps: tuple[DeviceStep, ...]
