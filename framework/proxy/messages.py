"""`/v1/messages` and its count of tokens: Anthropic's API, by the instance's own route (08 §7.9, 12 §10).

What llama-server would pass over without a word is refused here: a client would take the answer for one that
heeds it. Called by `routes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.answering import Generation, answer
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange
from framework.proxy.fields import flag, optional_object, wrong
from framework.proxy.leased_body import leased_body
from framework.proxy.media import Medium, check_media_support
from framework.proxy.media_blocks import has_images, prepare_blocks
from framework.proxy.message_whole import WholeMessage
from framework.proxy.messages_events import (
    MessagesState,
    MessagesStream,
    message_pieces,
    read_message_event,
)
from framework.proxy.model_choice import ModelChoice, shown
from framework.proxy.request_body import MESSAGES_BODY
from framework.proxy.vision import vision_models
from framework.proxy.whole_calls import forward_whole
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"
THINKING: Mapping[str, bool | None] = {"enabled": True, "disabled": False, "adaptive": None}


async def messages(exchange: Exchange) -> None:
    """Answer a conversation."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    streamed = exchange.request.stream = flag(body, "stream")
    asked = _prepared(exchange, body, choice)
    state = exchange.request.state = MessagesState()
    exchange.keep_texts(message_pieces)

    def stream(now: ModelChoice) -> MessagesStream:
        return MessagesStream(state, asked_model=now.asked, request_id=exchange.request.id)

    def whole(now: ModelChoice) -> WholeMessage:
        limit = exchange.services.limits.answer_limit_bytes
        return WholeMessage(state, asked_model=now.asked, request_id=exchange.request.id, limit_bytes=limit)

    build = _Builder(exchange, asked)
    generation = Generation(PATH, build, stream, whole, read=read_message_event, count_path=COUNT_PATH)
    await answer(exchange, generation, choice, streamed=streamed)


async def count_message_tokens(exchange: Exchange) -> None:
    """Count what a conversation takes, without an answer to it."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    build = _Builder(exchange, _prepared(exchange, body, choice))

    def counted(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        return {name: value for name, value in build(lease, live).items() if name != "stream"}

    await forward_whole(exchange, choice, COUNT_PATH, counted)


class _Builder:
    """The body for an instance, made anew for each attempt."""

    def __init__(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        self._exchange = exchange
        self._asked = asked
        self._media: frozenset[Medium] = _media(asked)
        self._seeing = vision_models(exchange)

    def __call__(self, lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        check_media_support(
            self._media,
            model=lease.request,
            can_see=lease.vision,
            can_hear=False,
            vision_models=self._seeing,
        )
        return leased_body(self._exchange, self._asked, MESSAGES_BODY, lease, live)


def _prepared(exchange: Exchange, body: Mapping[str, Any], choice: ModelChoice) -> dict[str, Any]:
    """The body with wishes about reasoning under our names, and its pictures checked."""
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise wrong("messages", "a list with at least one message")
    _check_prompt(body)
    _check_tools(body.get("tools"))
    asked = {**body, "messages": prepare_blocks(body["messages"])}
    can_see = choice.request.projector is not None
    check_media_support(
        _media(asked),
        model=choice.request,
        can_see=can_see,
        can_hear=can_see,
        vision_models=vision_models(exchange),
    )
    return {**asked, **_reasoning(body)}


def _media(asked: Mapping[str, Any]) -> frozenset[Medium]:
    return frozenset({"image"} if has_images(asked.get("messages"), "image") else ())


def _check_prompt(body: Mapping[str, Any]) -> None:
    for message in body["messages"]:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise wrong("messages", "a list of objects, each with `role` and `content`")
    system = body.get("system")
    if system is not None and not isinstance(system, str | list):
        raise wrong("system", "text or a list of text blocks")
    stops = body.get("stop_sequences")
    if stops is not None and not (isinstance(stops, list) and all(isinstance(one, str) for one in stops)):
        raise wrong("stop_sequences", "a list of texts")


def _check_tools(tools: Any) -> None:
    if tools is not None and not (isinstance(tools, list) and all(isinstance(t, Mapping) for t in tools)):
        raise wrong("tools", "a list of objects")
    for tool in tools or ():
        kind = tool.get("type") or "custom"
        if kind != "custom":
            raise ProxyError(
                "tools_not_supported",
                f"A tool of type {shown(str(kind))} runs on its maker's own servers. Tools here are of type "
                "`custom`, which the client runs.",
                param="tools",
            )


def _reasoning(body: Mapping[str, Any]) -> dict[str, Any]:
    """`thinking` and `output_config.effort` as the fields that every route shares."""
    found: dict[str, Any] = {}
    thinking = optional_object(body, "thinking")
    if thinking:
        kind = thinking.get("type")
        if not isinstance(kind, str) or kind not in THINKING:
            raise wrong("thinking.type", "enabled, disabled or adaptive")
        if THINKING[kind] is not None:
            found["enable_thinking"] = THINKING[kind]
    config = optional_object(body, "output_config")
    if config.get("effort") is not None:
        found["reasoning_effort"] = config["effort"]
    if config.get("format") is not None or body.get("output_format") is not None:
        raise ProxyError(
            "invalid_body",
            "An output format cannot be had on this route. /v1/chat/completions has `response_format`.",
            param="output_config",
        )
    return found
