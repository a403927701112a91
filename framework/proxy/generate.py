"""`/v1/chat/completions` and `/v1/completions`, streamed and not (08 §7). Called by `routes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from framework.proxy.access import may_use
from framework.proxy.client import ClientAnswer
from framework.proxy.collect import Collector
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.generation import Job, run_stream
from framework.proxy.interrupt import Interrupted
from framework.proxy.media import check_media_support, prepare_messages
from framework.proxy.model_choice import ModelChoice
from framework.proxy.relay import Flavour, Relay
from framework.proxy.request_body import generation_body
from framework.proxy.stream_events import StreamEvent
from framework.proxy.vision import sees
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

OK = 200
PATHS: Mapping[Flavour, str] = {"chat": "/v1/chat/completions", "completion": "/v1/completions"}


async def chat_completions(exchange: Exchange) -> None:
    """Answer a chat."""
    await _generate(exchange, "chat")


async def completions(exchange: Exchange) -> None:
    """Continue a text."""
    await _generate(exchange, "completion")


async def _generate(exchange: Exchange, flavour: Flavour) -> None:
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    streamed = exchange.request.stream = _flag(body, "stream")
    vision_models = _vision_models(exchange)
    if flavour == "chat":
        can_see = choice.request.projector is not None
        check_media_support(body, model=choice.request, can_see=can_see, vision_models=vision_models)
        body = {**body, "messages": prepare_messages(body)}

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        if flavour == "chat":
            # What was launched may see less than what was asked for.
            check_media_support(body, model=lease.request, can_see=lease.vision, vision_models=vision_models)
        return generation_body(
            body,
            live,
            model_id=lease.model,
            slot_context=lease.slot_context,
            max_tokens_fallback=exchange.services.limits.max_tokens_fallback,
        )

    job = Job(exchange.services, exchange.request, choice, PATHS[flavour], build)
    if streamed:
        await _stream(exchange, job, _relay(exchange, flavour, choice, body))
    else:
        await _collect(exchange, job, flavour)


def _relay(exchange: Exchange, flavour: Flavour, choice: ModelChoice, body: Mapping[str, Any]) -> Relay:
    options = body.get("stream_options")
    return Relay(
        exchange.request.state,
        flavour=flavour,
        asked_model=choice.asked,
        request_id=exchange.request.id,
        wants_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        wants_progress=body.get("return_progress") is True,
    )


async def _stream(exchange: Exchange, job: Job, relay: Relay) -> None:
    answer = exchange.answer
    exchange.relay = relay

    answer.keep_alive()
    try:
        await exchange.run(lambda: run_stream(job, _StreamSink(relay, answer)))
        # Not part of the work: once the instance is through, only the client's leaving could still matter.
        end = relay.finish()
    except Interrupted as interrupted:
        if interrupted.cause != "cancelled":
            raise stopped(interrupted) from interrupted
        exchange.request.error = "cancelled"
        end = relay.cancelled()
    await answer.write(end)
    await answer.end()


async def _collect(exchange: Exchange, job: Job, flavour: Flavour) -> None:
    collector = Collector(
        exchange.request.state,
        flavour=flavour,
        asked_model=job.choice.asked,
        limit_bytes=exchange.services.limits.answer_limit_bytes,
    )

    try:
        await exchange.run(lambda: run_stream(job, _CollectSink(collector)))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted
    await exchange.answer.send_json(OK, orjson.dumps(collector.result()))


@dataclass(frozen=True)
class _StreamSink:
    relay: Relay
    answer: ClientAnswer

    async def take(self, events: list[StreamEvent]) -> None:
        data = b"".join([self.relay.take(event) for event in events])
        # Held back so far: headers must not go out before the stream is opened (08 §7.1).
        if data:
            await self.answer.write(data)


@dataclass(frozen=True)
class _CollectSink:
    collector: Collector

    async def take(self, events: list[StreamEvent]) -> None:
        for event in events:
            self.collector.take(event)


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise ProxyError("invalid_body", f"`{name}` must be true or false.", param=name)
    return bool(value)


def _vision_models(exchange: Exchange) -> list[str]:
    """Models that take pictures and that this client may use."""
    views = [view for view in exchange.services.fleet.views() if not view.removed and sees(view)]
    return [view.request.id for view in views if may_use(exchange.key, view.request)]
