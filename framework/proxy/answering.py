"""A generation from choice of model to end of answer, streamed or collected, for every family of routes.

Called by the handlers of the families, which bring their own bodies, events and answers. A client that wants
no stream gets one that was collected: only streams can be cancelled and watched (08 §3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson

from framework.proxy.answer_stream import AnswerStream, WholeAnswer
from framework.proxy.client import JSON, ClientAnswer
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.generation import BuildBody, Job, ReadEvent, Sink, run_stream
from framework.proxy.interrupt import Interrupted
from framework.proxy.model_choice import ModelChoice
from framework.proxy.overflow import overflow_choice
from framework.proxy.stream_events import StreamEvent, read_event

OK = 200
S = TypeVar("S", bound=Sink)


class Refine(Protocol):
    """Changes events between instance and answer."""

    def take(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """What becomes of events that came together."""
        ...

    def finish(self) -> list[StreamEvent]:
        """What was held back, at a normal end."""
        ...


class AsTheyAre:
    """Changes nothing."""

    def take(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """The same events."""
        return events

    def finish(self) -> list[StreamEvent]:
        """Nothing is held back."""
        return []


@dataclass(frozen=True)
class Generation:
    """How one request is served; the answers are made anew for a model that takes over."""

    path: str
    """Route of the instance."""
    build: BuildBody
    stream: Callable[[ModelChoice], AnswerStream]
    whole: Callable[[ModelChoice], WholeAnswer]
    read: ReadEvent = read_event
    refine: Callable[[], Refine] = AsTheyAre
    count_path: str = ""
    """Route of the instance that counts a prompt, where an answer may come without its counts."""
    media_type: str = JSON
    """Of the answer when it is not streamed; other than JSON it is text."""


async def answer(exchange: Exchange, generation: Generation, choice: ModelChoice, *, streamed: bool) -> None:
    """Serve the request to its end. Raises ProxyError and ClientGone."""
    if streamed:
        await _answer_stream(exchange, generation, choice)
    else:
        await _answer_whole(exchange, generation, choice)


async def _answer_stream(exchange: Exchange, generation: Generation, choice: ModelChoice) -> None:
    client = exchange.answer
    client.keep_alive()

    def sink(now: ModelChoice) -> _StreamSink:
        exchange.relay = generation.stream(now)
        return _StreamSink(exchange.relay, generation.refine(), client)

    first = sink(choice)
    try:
        last = await exchange.run(lambda: _run(exchange, generation, choice, first, sink))
        # Not part of the work: once the instance is through, only the client's leaving could still matter.
        end = b"".join(map(last.relay.take, last.refine.finish())) + last.relay.finish()
    except Interrupted as interrupted:
        if interrupted.cause != "cancelled":
            raise stopped(interrupted) from interrupted
        exchange.request.error = "cancelled"
        end = (exchange.relay or first.relay).cancelled()
    await client.end(end)


async def _answer_whole(exchange: Exchange, generation: Generation, choice: ModelChoice) -> None:
    def sink(now: ModelChoice) -> _WholeSink:
        return _WholeSink(generation.whole(now), generation.refine())

    try:
        last = await exchange.run(lambda: _run(exchange, generation, choice, sink(choice), sink))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted
    result = last.result()
    payload = orjson.dumps(result) if generation.media_type == JSON else str(result).encode()
    await exchange.answer.send_json(OK, payload, {"content-type": generation.media_type})


async def _run(
    exchange: Exchange,
    generation: Generation,
    choice: ModelChoice,
    first: S,
    sink: Callable[[ModelChoice], S],
) -> S:
    """The attempts on one model, and on the one that takes over; the sink that got the answer."""
    try:
        await run_stream(_job(exchange, generation, choice), first)
    except ProxyError as error:
        other = overflow_choice(exchange, choice, error)
        if other is None:
            raise
        second = sink(other)
        await run_stream(_job(exchange, generation, other), second)
        return second
    return first


def _job(exchange: Exchange, generation: Generation, choice: ModelChoice) -> Job:
    return Job(
        exchange.services,
        exchange.request,
        choice,
        generation.path,
        generation.build,
        generation.read,
        generation.count_path,
    )


@dataclass(frozen=True)
class _StreamSink:
    relay: AnswerStream
    refine: Refine
    answer: ClientAnswer

    async def take(self, events: list[StreamEvent]) -> None:
        data = b"".join([self.relay.take(event) for event in self.refine.take(events)])
        # Held back so far: headers must not go out before the stream is opened (08 §7.1).
        if data:
            await self.answer.write(data)


@dataclass(frozen=True)
class _WholeSink:
    whole: WholeAnswer
    refine: Refine

    async def take(self, events: list[StreamEvent]) -> None:
        for event in self.refine.take(events):
            self.whole.take(event)

    def result(self) -> Any:
        """The answer, with what was held back."""
        for event in self.refine.finish():
            self.whole.take(event)
        return self.whole.result()
