"""The right to use one instance for one upstream request (08 §1.1, §2).

Given out by the fleet, held by the proxy. An instance with an open lease is never stopped for idleness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from framework.values.instance import LoadProgress
from framework.values.reason import Reason
from framework.values.reasoning import NO_REASONING, ReasoningFacts
from framework.values.request import ModelRequest

RevokeCode = Literal["model_unloaded", "instance_replaced", "shutting_down"]
RefusalCode = Literal[
    "queue_full",
    "model_loading",
    "model_load_failed",
    "model_not_loaded",
    "model_not_found",
    "no_memory",
    "instance_restarting",
    "instance_replaced",
    "model_unloaded",
    "shutting_down",
]
FailureKind = Literal["connect", "read", "write", "close", "protocol", "early_end", "timeout"]


class LeaseRefused(Exception):
    """No instance can be had. `retry_after_s` is None where waiting does not help (08 §2.4)."""

    def __init__(
        self,
        code: RefusalCode,
        message: str,
        *,
        retry_after_s: float | None = None,
        reason: Reason | None = None,
        progress: LoadProgress | None = None,
    ) -> None:
        super().__init__(message)
        self.code: RefusalCode = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.reason = reason
        self.progress = progress


@dataclass(eq=False)
class Lease:
    """One upstream request's hold on an instance. `release` is called on every path; twice is harmless."""

    instance: str
    model: str
    replica: int
    generation: int
    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    """`Authorization` of this launch, or empty when it has no key. Never shown to a client."""
    request: ModelRequest
    slot_context: int
    """Tokens one slot can hold, 0 when unknown."""
    vision: bool
    revoked: asyncio.Future[RevokeCode]
    """Done when the instance will not wait for this request any longer; the holder ends its request then."""
    on_release: Callable[[Lease], None] = field(repr=False)
    audio: bool = False
    reasoning: ReasoningFacts = NO_REASONING
    """What a request may ask of the chat template."""
    is_over: Callable[[], bool] = field(default=lambda: False, repr=False)
    """Whether the process has ended by now. Who answers on its port then is a stranger."""
    released: bool = False
    listens: bool = False
    """Whether the holder waits for the engine at this moment, and not for its client."""
    heard: int = 0
    """How often the engine brought it something: events of a stream, whole answers."""
    is_suspect: bool = False
    """Whether the process broke while this was the only request that it had not answered to yet."""
    ended_for: Reason | None = None
    """Why the process was ended under it, where that was done on purpose."""
    timings: Mapping[str, Any] | None = field(default=None, repr=False)
    """The engine's own times of the answer (15 §6), left by the holder of one that ended as it should."""

    def release(self) -> None:
        """Give the lease back; wakes whoever waits for the instance to drain."""
        if not self.released:
            self.released = True
            self.on_release(self)


@dataclass(frozen=True)
class Glance:
    """What a ready instance said of itself when it was looked at."""

    request: ModelRequest
    status: int | None
    """Of HTTP; None where no answer came in time, or none that is JSON."""
    answer: Any = None


@dataclass(frozen=True)
class RetryVerdict:
    """The supervisor's answer to a failed upstream call (08 §5.4). `code` is set when there is no retry."""

    retry: bool
    code: Literal["connection_lost", "instance_restarting", "model_unloaded"] | None = None
    retry_after_s: float | None = None
    reason: Reason | None = None
    """Why there is no retry, where the client should be told."""
