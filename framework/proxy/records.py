"""What is known of a client's request: while it runs, and once it has ended (13 §9 `Request`).

`ActiveRequest` is changed by the handler that serves it; everybody else gets values. The record of a
finished request becomes one log line, in which text of clients is quoted, and goes to the request log.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from framework.proxy.engine_timings import engine_times
from framework.proxy.interrupt import InterruptScope
from framework.proxy.stream_events import StreamState
from framework.proxy.texts import KeptTexts
from framework.proxy.usage import backfill, cached_tokens, count
from framework.values.request_record import RequestRecord

log = logging.getLogger(__name__)

Phase = Literal["waiting", "sent", "streaming"]
"""Waiting for an instance; sent to it, nothing of the answer yet; the answer is coming."""
LONGEST_IN_LOG = 100


@dataclass(frozen=True)
class RequestView:
    """A request that is being served. `tokens` is an estimate of what was generated so far."""

    id: str
    at: datetime
    route: str
    model: str
    replica: int | None
    key: str | None
    phase: Phase
    tokens: int


@dataclass(eq=False)
class ActiveRequest:
    """A client's request from its arrival to its end. `began_at_s` is on the clock of `record`.

    `route` is the path that was asked for until it is known which route that is.
    """

    id: str
    at: datetime
    route: str
    began_at_s: float
    key: str | None = None
    model: str | None = None
    replica: int | None = None
    instance: str | None = None
    stream: bool | None = None
    retried: bool = False
    phase: Phase = "waiting"
    queue_s: float = 0.0
    first_token_s: float | None = None
    state: StreamState = field(default_factory=StreamState)
    scope: InterruptScope = field(default_factory=InterruptScope)
    error: str | None = None
    texts: KeptTexts | None = None
    """What was asked and answered, where the manifest wants that kept."""

    def view(self) -> RequestView:
        """The request as it is now."""
        return RequestView(
            self.id,
            self.at,
            self.route,
            self.model or "",
            self.replica,
            self.key,
            self.phase,
            self.state.pieces,
        )

    def record(self, status: int, now_s: float) -> RequestRecord:
        """The request as it ended, at `now_s` on the clock of `began_at_s`."""
        timings = self.state.timings
        usage = backfill(self.state.usage, timings)
        reasons = [reason for reason in self.state.finish.values() if reason]
        # Before the first token they may be of the slot's previous request (15 §6).
        times = engine_times(timings if self.state.opened else None, len(self.state.finish))
        return RequestRecord(
            id=self.id,
            at=self.at,
            route=self.route,
            model=self.model,
            replica=self.replica,
            key=self.key,
            status=status,
            queue_s=self.queue_s,
            first_token_s=self.first_token_s,
            total_s=now_s - self.began_at_s,
            prompt_tokens=count(usage, "prompt_tokens"),
            cached_tokens=cached_tokens(usage),
            generated_tokens=count(usage, "completion_tokens") or self.state.pieces or None,
            drafted=count(timings, "draft_n"),
            accepted=count(timings, "draft_n_accepted"),
            stop_reason=reasons[0] if reasons else None,
            error=self.error,
            instance=self.instance,
            stream=self.stream,
            retried=self.retried,
            prompt_s=times.prompt_s,
            generation_s=times.generation_s,
            prompt_tokens_per_s=times.prompt_tokens_per_s,
            generation_tokens_per_s=times.generation_tokens_per_s,
            texts=self.texts.result() if self.texts is not None else None,
        )


OnFinished = Callable[[RequestRecord], None]


def log_record(record: RequestRecord) -> None:
    """One line for one request."""
    first = "-" if record.first_token_s is None else f"{record.first_token_s:.3f}s"
    log.info(
        "%s %s model=%s key=%s status=%d queue=%.3fs first=%s total=%.3fs prompt=%s cached=%s generated=%s "
        "stop=%s error=%s",
        record.id,
        _quoted(record.route),
        _quoted(record.model),
        _quoted(record.key),
        record.status,
        record.queue_s,
        first,
        record.total_s,
        _shown(record.prompt_tokens),
        _shown(record.cached_tokens),
        _shown(record.generated_tokens),
        _quoted(record.stop_reason),
        record.error or "-",
    )


def _quoted(text: str | None) -> str:
    """Text of others on one line of printable ASCII."""
    return "-" if text is None else json.dumps(text[:LONGEST_IN_LOG])


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)
