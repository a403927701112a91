"""llama-server's own `/completion` and `/infill` (08 §7.9, 12 §6, §11). Called by `routes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.answering import Generation, answer
from framework.proxy.engine_events import (
    EngineFrame,
    EngineState,
    EngineStream,
    WholeCompletion,
    engine_pieces,
    read_engine_event,
)
from framework.proxy.exchange import Exchange
from framework.proxy.fields import flag, wrong
from framework.proxy.leased_body import leased_body
from framework.proxy.media import Medium, check_media_support
from framework.proxy.model_choice import ModelChoice
from framework.proxy.request_body import ENGINE_BODY
from framework.proxy.usage import prompt_count
from framework.proxy.vision import vision_models
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

FIELDS = "response_fields"
MEDIA = "multimodal_data"


async def completion(exchange: Exchange) -> None:
    """Continue a text, or several."""
    await _complete(exchange, "/completion")


async def infill(exchange: Exchange) -> None:
    """Fill the gap between two texts."""
    await _complete(exchange, "/infill")


async def _complete(exchange: Exchange, path: str) -> None:
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    streamed = exchange.request.stream = flag(body, "stream")
    fields = body.get(FIELDS) or []
    if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
        raise wrong(FIELDS, "a list of names")
    media: frozenset[Medium] = frozenset({"image"} if _has_media(body.get("prompt")) else ())
    seeing = vision_models(exchange)
    check_media_support(
        media,
        model=choice.request,
        can_see=choice.request.projector is not None,
        can_hear=True,
        vision_models=seeing,
        param="prompt",
    )
    asked = {name: value for name, value in body.items() if name != FIELDS}
    state = exchange.request.state = EngineState(prompts=prompt_count(body.get("prompt")))
    exchange.keep_texts(engine_pieces)

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        can_take = lease.vision or lease.audio
        check_media_support(
            media,
            model=lease.request,
            can_see=can_take,
            can_hear=can_take,
            vision_models=seeing,
            param="prompt",
        )
        return leased_body(exchange, asked, ENGINE_BODY, lease, live)

    def stream(now: ModelChoice) -> EngineStream:
        wants_progress = body.get("return_progress") is True
        frame = EngineFrame(now.asked, fields)
        return EngineStream(state, frame, request_id=exchange.request.id, wants_progress=wants_progress)

    def whole(now: ModelChoice) -> WholeCompletion:
        return WholeCompletion(
            EngineFrame(now.asked, fields),
            with_tokens=body.get("return_tokens") is True,
            limit_bytes=exchange.services.limits.answer_limit_bytes,
        )

    generation = Generation(path, build, stream, whole, read=read_engine_event)
    await answer(exchange, generation, choice, streamed=streamed)


def _has_media(prompt: object) -> bool:
    """Whether a prompt, or one of several, brings media."""
    prompts = prompt if isinstance(prompt, list) else [prompt]
    return any(isinstance(one, Mapping) and one.get(MEDIA) for one in prompts)
