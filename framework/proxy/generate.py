"""`/v1/chat/completions` and `/v1/completions`, streamed and not (08 §7). Called by `routes`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from framework.proxy.answering import AsTheyAre, Generation, Refine, answer
from framework.proxy.collect import Collector
from framework.proxy.exchange import Exchange
from framework.proxy.fields import flag
from framework.proxy.leased_body import leased_body
from framework.proxy.media import check_media_support, media_of, prepare_messages
from framework.proxy.model_choice import ModelChoice
from framework.proxy.reasoning_answer import ReasoningView, reasoning_form
from framework.proxy.relay import Flavour, Relay
from framework.proxy.request_body import CHAT_BODY
from framework.proxy.tool_history import prepare_tool_history
from framework.proxy.usage import prompt_count
from framework.proxy.vision import vision_models
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

log = logging.getLogger(__name__)

CUT_OFF = "empty_content_reasoning_limit"
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
    streamed = exchange.request.stream = flag(body, "stream")
    if flavour == "completion":
        exchange.request.state.prompts = prompt_count(body.get("prompt"))
    seeing = vision_models(exchange)
    media = media_of(body) if flavour == "chat" else frozenset()
    form = reasoning_form(body)
    if flavour == "chat":
        can_see = choice.request.projector is not None
        check_media_support(
            media, model=choice.request, can_see=can_see, can_hear=can_see, vision_models=seeing
        )
        body = {**body, "messages": prepare_tool_history(prepare_messages(body))}

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        # What was launched may see less than what was asked for.
        check_media_support(
            media, model=lease.request, can_see=lease.vision, can_hear=lease.audio, vision_models=seeing
        )
        return leased_body(exchange, body, CHAT_BODY, lease, live)

    def stream(now: ModelChoice) -> Relay:
        options = body.get("stream_options")
        return Relay(
            exchange.request.state,
            flavour=flavour,
            asked_model=now.asked,
            request_id=exchange.request.id,
            wants_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
            wants_progress=body.get("return_progress") is True,
        )

    def whole(now: ModelChoice) -> Collector:
        return Collector(
            exchange.request.state,
            flavour=flavour,
            asked_model=now.asked,
            limit_bytes=exchange.services.limits.answer_limit_bytes,
        )

    limit = exchange.services.limits.answer_limit_bytes
    view = ReasoningView(form, limit_bytes=limit)
    refine: Refine = view if flavour == "chat" else AsTheyAre()
    generation = Generation(PATHS[flavour], build, stream, whole, refine=lambda: refine)
    await answer(exchange, generation, choice, streamed=streamed)
    if view.is_cut_off:
        _note_cut_off(exchange)


def _note_cut_off(exchange: Exchange) -> None:
    """An empty answer whose limit went into reasoning: no error of anybody's, and easy to mend."""
    request = exchange.request
    request.error = CUT_OFF
    log.info(
        "%s: the limit of tokens was spent on reasoning and nothing was answered: raise max_tokens, or have "
        "it reason less with models.%s.reasoning or the request's reasoning_effort",
        request.id,
        request.model,
    )
