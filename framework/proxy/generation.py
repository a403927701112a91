"""One request's way to an instance and back: lease, attempt, clocks, one retry (08 §2.2, §3, §5, §6).

Called by the handlers. A request is served in at most two attempts; the second only when the connection
broke before the answer had begun and the fleet says so. The lease is given back on every path, before the
fleet is asked for advice. Interruption comes from outside as a cancel of the running task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson

from framework.proxy.access import EVERY_MODEL
from framework.proxy.clocks import GenerationClock
from framework.proxy.engine_errors import engine_refusal, error_of_engine, event_status
from framework.proxy.errors import ProxyError, refused_lease, revoked_lease
from framework.proxy.model_choice import ModelChoice
from framework.proxy.patience import Patience
from framework.proxy.prompt_tokens import prompt_tokens
from framework.proxy.public_reason import public_reason
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices
from framework.proxy.sse import SseReader
from framework.proxy.stream_events import StreamEvent, read_event
from framework.proxy.upstream import UpstreamAnswer, UpstreamLost
from framework.runtime.lease import Lease, LeaseRefused, RetryVerdict, RevokeCode
from framework.values.request import LiveSettings

log = logging.getLogger(__name__)

OK = 200
LOST = RetryVerdict(retry=False, code="connection_lost")
T = TypeVar("T")


class Sink(Protocol):
    """Where the events of a stream go."""

    async def take(self, events: list[StreamEvent]) -> None:
        """Events that arrived together, observed already. Returns when more may come."""
        ...


BuildBody = Callable[[Lease, LiveSettings], Mapping[str, Any]]
"""The body for one attempt; called anew for each. May refuse by ProxyError."""
ReadEvent = Callable[[bytes], StreamEvent | None]
"""The event of a payload of the instance's stream, in the words of one family of routes."""


@dataclass(frozen=True)
class Job:
    """A request that is ready to be sent: which model, which route of the instance, which body."""

    services: ProxyServices
    request: ActiveRequest
    choice: ModelChoice
    path: str
    build: BuildBody
    read: ReadEvent = read_event
    count_path: str = ""
    """Route of the instance that counts the tokens of such a body; empty where no answer lacks them."""

    @property
    def live(self) -> LiveSettings:
        """The model's live settings as the manifest has them now."""
        found = self.services.current.manifest.models.get(self.choice.id, self.choice.request)
        return found.live


async def run_stream(job: Job, sink: Sink) -> None:
    """Send a generation and hand its events to `sink` until its normal end. Raises ProxyError."""
    await _with_lease(job, lambda lease: _stream_attempt(job, lease, sink))


async def run_whole(job: Job) -> bytes:
    """Send a request whose answer comes in one piece, and return its body. Raises ProxyError."""
    return await _with_lease(job, lambda lease: _whole_attempt(job, lease))


async def _with_lease(job: Job, attempt: Callable[[Lease], Awaitable[T]]) -> T:
    retried = False
    while True:
        lease = await _acquire(job)
        revoked = _watch(job, lease)
        try:
            return await attempt(lease)
        except UpstreamLost as lost:
            failure = lost
        finally:
            lease.revoked.remove_done_callback(revoked)
            lease.release()
        if lease.revoked.done() and not lease.revoked.cancelled():
            raise revoked_lease(lease.revoked.result()) from failure
        opened = job.request.state.opened
        # The answer to a second failure is fixed, and asking might wait for a respawn (08 §5.4).
        verdict = LOST if retried else await _report(job, lease, failure, opened=opened)
        if opened or not verdict.retry:
            raise _lost(verdict, opened=opened) from failure
        retried = job.request.retried = True
        log.warning(
            "%s: lost the connection to %s (%s: %s), trying once more",
            job.request.id,
            lease.instance,
            failure.kind,
            failure.detail,
        )


async def _report(job: Job, lease: Lease, failure: UpstreamLost, *, opened: bool) -> RetryVerdict:
    return await job.services.fleet.report_failure(lease, failure.kind, opened=opened)


async def _acquire(job: Job) -> Lease:
    request, clock = job.request, job.services.clock
    request.phase = "waiting"
    began = clock()
    try:
        lease = await job.services.fleet.acquire(job.choice.id, key=request.key)
    except LeaseRefused as refused:
        raise refused_lease(refused, names_others=_may_know_others(job)) from refused
    finally:
        request.queue_s += clock() - began
    request.replica, request.instance = lease.replica, lease.instance
    return lease


def _may_know_others(job: Job) -> bool:
    """Whether the caller may use every model, and so read the names of those that are in the way."""
    manifest = job.services.current.manifest
    mine = [key for key in manifest.access if key.name == job.request.key]
    return not manifest.access or any(EVERY_MODEL in key.models for key in mine)


def _watch(job: Job, lease: Lease) -> Callable[[asyncio.Future[RevokeCode]], None]:
    """End the request when its lease is revoked; the callback, to be removed with the lease."""

    def on_revoked(revoked: asyncio.Future[RevokeCode]) -> None:
        if not revoked.cancelled():
            job.request.scope.interrupt(revoked.result())

    lease.revoked.add_done_callback(on_revoked)
    return on_revoked


def _lost(verdict: RetryVerdict, *, opened: bool) -> ProxyError:
    """What a failure that is not retried means for the client (08 §5.4)."""
    if verdict.code == "model_unloaded":
        return revoked_lease("model_unloaded")
    if opened:
        return ProxyError(
            "stream_interrupted",
            "The connection to the engine broke in the middle of the answer. Nothing is repeated, since part "
            "of it was sent.",
        )
    if verdict.code == "instance_restarting":
        crashed = "The engine of this model has crashed and is started again after a pause."
        return ProxyError(
            "instance_restarting",
            public_reason(verdict.reason).message if verdict.reason is not None else crashed,
            retry_after_s=verdict.retry_after_s or 1.0,
            reason=verdict.reason,
        )
    return ProxyError(
        "connection_lost",
        "The connection to the engine was lost before it answered.",
        retry_after_s=verdict.retry_after_s,
    )


async def _stream_attempt(job: Job, lease: Lease, sink: Sink) -> None:
    waits = _Waits(job, lease)
    answer = await _post(job, lease, waits)
    try:
        if answer.status != OK:
            raise await _refusal(job, lease, answer, waits)
        if not answer.is_event_stream:
            raise ProxyError("upstream_protocol_error", "The engine did not answer with a stream.")
        await _pump(job, lease, answer, waits, sink)
    finally:
        answer.close()
    state = job.request.state
    if job.count_path and state.lacks_prompt:
        body = job.build(lease, job.live)
        state.note_prompt(await prompt_tokens(job.services, lease, job.count_path, body))


async def _pump(job: Job, lease: Lease, answer: UpstreamAnswer, waits: _Waits, sink: Sink) -> None:
    reader = SseReader(job.services.limits.line_limit_bytes)
    state = job.request.state
    while not state.done:
        chunk = await waits.limited(answer.read)
        payloads = reader.feed(chunk) if chunk else reader.finish()
        events = [event for payload in payloads if (event := job.read(payload)) is not None]
        events, failed = _observe(job, lease, events, waits.clock)
        if events:
            await sink.take(events)
        if failed is not None:
            raise failed
        if not chunk:
            break
    if state.complete:
        # Of several choices the times are those of the last one, which shared the engine with the others.
        lease.timings = state.timings if len(state.finish) <= 1 else None
        return
    if not state.opened:
        raise UpstreamLost("early_end", "the stream ended before it brought anything")
    raise ProxyError("stream_truncated", "The engine ended its stream in the middle of the answer.")


def _observe(
    job: Job, lease: Lease, events: list[StreamEvent], clock: GenerationClock
) -> tuple[list[StreamEvent], ProxyError | None]:
    """Count events in, up to the end mark or an error; the events before it, and that error."""
    request = job.request
    for number, event in enumerate(events):
        if event.kind == "error":
            error = event.data["error"]
            found = error if isinstance(error, dict) else {"message": error}
            refusal = error_of_engine(event_status(error), found, model=lease.request, headers=lease.headers)
            return events[:number], refusal
        request.state.observe(event)
        if request.texts is not None:
            request.texts.observe(event)
        if event.kind == "done":
            return events[:number], None
        clock.saw_event(progress=event.kind == "progress")
        lease.heard += 1
        if request.first_token_s is None and request.state.opened:
            request.first_token_s = job.services.clock() - request.began_at_s
            request.phase = "streaming"
    return events, None


async def _whole_attempt(job: Job, lease: Lease) -> bytes:
    waits = _Waits(job, lease)
    answer = await _post(job, lease, waits)
    try:
        if answer.status != OK:
            raise await _refusal(job, lease, answer, waits)
        limit = job.services.limits.answer_limit_bytes
        whole = await waits.limited(lambda: answer.read_all(limit))
        lease.heard += 1
        return whole
    finally:
        answer.close()


async def _post(job: Job, lease: Lease, waits: _Waits) -> UpstreamAnswer:
    body = orjson.dumps(job.build(lease, job.live))
    job.request.phase = "sent"
    answer = await waits.limited(lambda: job.services.upstream.post(lease, job.path, body))
    if lease.is_over():
        # PL-06: the port of a process that ended is anybody's before its exit is seen. While it lives, the
        # port is its own, so whoever answered before this look at the process is the engine.
        answer.close()
        raise UpstreamLost("close", "the engine had ended; whatever answered on its port is not it")
    return answer


async def _refusal(job: Job, lease: Lease, answer: UpstreamAnswer, waits: _Waits) -> ProxyError:
    limit = job.services.limits.error_limit_bytes
    body = await waits.limited(lambda: answer.read_all(limit, cut=True))
    return engine_refusal(answer.status, body, model=lease.request, headers=lease.headers)


class _Waits:
    """The waits for the instance of one attempt, each within what the clock allows."""

    def __init__(self, job: Job, lease: Lease) -> None:
        live = job.live
        self._job = job
        self._lease = lease
        self._now = job.services.clock
        self._patience = Patience()
        self.clock = GenerationClock(
            self._now(), first_token_s=live.first_token_timeout_s, stall_s=live.stall_timeout_s
        )

    async def limited(self, wait: Callable[[], Awaitable[T]]) -> T:
        """One wait. Raises ProxyError when it takes too long."""
        wait_s = self.clock.begin_wait(self._now())
        if wait_s <= 0:
            raise _too_slow(self._job, self.clock)
        self._lease.listens = True
        try:
            with self._patience.within(wait_s):
                result = await wait()
        except TimeoutError as error:
            if not self._patience.expired:
                raise
            raise _too_slow(self._job, self.clock) from error
        finally:
            self._lease.listens = False
        self.clock.end_wait(self._now())
        return result


def _too_slow(job: Job, clock: GenerationClock) -> ProxyError:
    live, table = job.live, f"models.{job.choice.id}.timeout"
    if clock.code == "first_token_timeout":
        return ProxyError(
            "first_token_timeout",
            f"No first token came within {live.first_token_timeout_s:g} s ({table}.first_token).",
        )
    return ProxyError(
        "stream_stalled",
        f"The engine stopped in the middle of the answer: nothing for {live.stall_timeout_s:g} s "
        f"({table}.stall).",
    )
