"""What comes together in one step of a history, and the value that readers get of it. Pure.

A step takes the same room however much happens in it: of times and speeds an even choice is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from framework.values.history import ModelStep
from framework.values.instance import ModelView
from framework.values.request_record import RequestRecord
from framework.values.rounding import rounded

# Enough for a 95th percentile that means something; 60 steps of 100 models stay below 20 MB.
MOST_KEPT = 64
BAD_REQUEST, CONFLICT, CLIENT_LEFT, SERVER_ERROR = 400, 409, 499, 500
TIME_DIGITS, RATE_DIGITS = 3, 1


class Choice:
    """An even choice of the values that came."""

    __slots__ = ("_dice", "_seen", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self._seen = 0
        # Made when it is needed: the state of one takes more room than all values.
        self._dice: Random | None = None

    def add(self, value: float | None) -> None:
        """Take a value into account; what is none, or no number, is left out."""
        if value is None or not math.isfinite(value):
            return
        self._seen += 1
        if len(self.values) < MOST_KEPT:
            self.values.append(value)
            return
        self._dice = self._dice or Random(0)
        if (place := self._dice.randrange(self._seen)) < MOST_KEPT:
            self.values[place] = value


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that this share of all reaches at most; None of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


@dataclass
class OpenStep:
    """One model in a step that goes on."""

    answered: int = 0
    left: int = 0
    refused: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    busy_slots: int | None = None
    slots: int | None = None
    waiting: int | None = None
    depth_tokens: int = 0
    depth_samples: int = 0
    first_token: Choice = field(default_factory=Choice)
    queue: Choice = field(default_factory=Choice)
    generation: Choice = field(default_factory=Choice)
    prompt: Choice = field(default_factory=Choice)

    def request_ended(self, record: RequestRecord) -> None:
        """Count a request in."""
        if record.status < BAD_REQUEST:
            self.answered += 1
        elif record.status in (CONFLICT, CLIENT_LEFT):
            self.left += 1
        elif record.status < SERVER_ERROR:
            self.refused += 1
        else:
            self.failed += 1
        self.prompt_tokens += record.prompt_tokens or 0
        self.generated_tokens += record.generated_tokens or 0
        if record.drafted:
            self.drafted += record.drafted
            self.accepted += min(record.drafted, record.accepted or 0)
        self.queue.add(record.queue_s)
        self.first_token.add(record.first_token_s)
        self.generation.add(record.generation_tokens_per_s)
        self.prompt.add(record.prompt_tokens_per_s)

    def saw(self, view: ModelView) -> bool:
        """Take a look at the model into account; whether anything of it moved."""
        slots = [slot for instance in view.instances for slot in instance.slots]
        busy = [slot for slot in slots if slot.state != "idle"]
        self.slots = max(self.slots or 0, len(slots)) or self.slots
        if slots:
            self.busy_slots = max(self.busy_slots or 0, len(busy))
        self.waiting = max(self.waiting or 0, view.queue.waiting)
        for slot in busy:
            depth = (slot.draft or {}).get("depth")
            if isinstance(depth, int):
                self.depth_tokens += depth
                self.depth_samples += 1
        return bool(busy or view.queue.waiting)

    def closed(self, at: datetime) -> ModelStep:
        """The step as it is now."""
        return ModelStep(
            at=at,
            answered=self.answered,
            left=self.left,
            refused=self.refused,
            failed=self.failed,
            first_token_p50_s=rounded(quantile(self.first_token.values, 0.5), TIME_DIGITS),
            first_token_p95_s=rounded(quantile(self.first_token.values, 0.95), TIME_DIGITS),
            queue_p95_s=rounded(quantile(self.queue.values, 0.95), TIME_DIGITS),
            generation_tokens_per_s=rounded(quantile(self.generation.values, 0.5), RATE_DIGITS),
            prompt_tokens_per_s=rounded(quantile(self.prompt.values, 0.5), RATE_DIGITS),
            prompt_tokens=self.prompt_tokens,
            generated_tokens=self.generated_tokens,
            drafted=self.drafted,
            accepted=self.accepted,
            busy_slots=self.busy_slots,
            slots=self.slots,
            waiting=self.waiting,
            depth=round(self.depth_tokens / self.depth_samples, 1) if self.depth_samples else None,
        )
