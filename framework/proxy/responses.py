"""`/v1/responses` and its count of tokens: OpenAI's API, by the instance's own route (08 §7.9, 12 §9).

Nothing is stored here, and tools are the client's: what asks for more is refused, never passed over.
Called by `routes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.answering import Generation, answer
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange
from framework.proxy.fields import flag, optional_object, optional_text, wrong
from framework.proxy.leased_body import leased_body
from framework.proxy.media import Medium, check_media_support
from framework.proxy.media_blocks import has_images, prepare_items
from framework.proxy.model_choice import ModelChoice, shown
from framework.proxy.request_body import RESPONSES_BODY
from framework.proxy.responses_events import (
    ResponseFrame,
    ResponsesState,
    ResponsesStream,
    WholeResponse,
    read_response_event,
    response_pieces,
)
from framework.proxy.usage import count
from framework.proxy.vision import vision_models
from framework.proxy.whole_calls import forward_whole
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

PATH = "/v1/responses"
COUNT_PATH = "/v1/responses/input_tokens"
STORED: Mapping[str, str] = {
    "previous_response_id": "send the whole conversation in `input`",
    "conversation": "send the whole conversation in `input`",
    "prompt": "send its text as `instructions`",
    "background": "ask without it, and wait for the answer",
}
"""Fields that need a server which keeps something, and what to do instead."""


async def responses(exchange: Exchange) -> None:
    """Answer an input."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    streamed = exchange.request.stream = flag(body, "stream")
    asked = _prepared(exchange, body, choice)
    state = exchange.request.state = ResponsesState()
    exchange.keep_texts(response_pieces)
    build = _Builder(exchange, asked, state)

    def frame(now: ModelChoice) -> ResponseFrame:
        return ResponseFrame(body, now.asked, int(exchange.request.at.timestamp()))

    def stream(now: ModelChoice) -> ResponsesStream:
        return ResponsesStream(state, frame(now), request_id=exchange.request.id)

    def whole(now: ModelChoice) -> WholeResponse:
        return WholeResponse(state, frame(now))

    generation = Generation(PATH, build, stream, whole, read=read_response_event)
    await answer(exchange, generation, choice, streamed=streamed)


async def count_response_tokens(exchange: Exchange) -> None:
    """Count what an input takes, without an answer to it."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    build = _Builder(exchange, _prepared(exchange, body, choice), ResponsesState())

    def counted(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        return {name: value for name, value in build(lease, live).items() if name != "stream"}

    await forward_whole(exchange, choice, COUNT_PATH, counted)


class _Builder:
    """The body for an instance, made anew for each attempt."""

    def __init__(self, exchange: Exchange, asked: Mapping[str, Any], state: ResponsesState) -> None:
        self._exchange = exchange
        self._asked = asked
        self._state = state
        self._media: frozenset[Medium] = _media(asked)
        self._seeing = vision_models(exchange)

    def __call__(self, lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        check_media_support(
            self._media,
            model=lease.request,
            can_see=lease.vision,
            can_hear=False,
            vision_models=self._seeing,
            param="input",
        )
        body = leased_body(self._exchange, self._asked, RESPONSES_BODY, lease, live)
        self._state.token_limit = count(body, "max_output_tokens")
        self._state.context_limit = lease.slot_context
        return body


def _prepared(exchange: Exchange, body: Mapping[str, Any], choice: ModelChoice) -> dict[str, Any]:
    """The body with its format under the engine's name, and its pictures checked."""
    if not isinstance(body.get("input"), str | list) or not body["input"]:
        raise wrong("input", "text or a list of items, and not empty")
    optional_text(body, "instructions")
    for name, remedy in STORED.items():
        if body.get(name):
            raise ProxyError(
                "invalid_body", f"`{name}` cannot be had: nothing is stored here; {remedy}.", param=name
            )
    _check_tools(body.get("tools"))
    asked = {**body, "input": prepare_items(body["input"])}
    if (wanted := _response_format(body)) is not None:
        asked["response_format"] = wanted
    can_see = choice.request.projector is not None
    check_media_support(
        _media(asked),
        model=choice.request,
        can_see=can_see,
        can_hear=can_see,
        vision_models=vision_models(exchange),
        param="input",
    )
    return asked


def _media(asked: Mapping[str, Any]) -> frozenset[Medium]:
    return frozenset({"image"} if has_images(asked.get("input"), "input_image") else ())


def _check_tools(tools: Any) -> None:
    if tools is not None and not (isinstance(tools, list) and all(isinstance(t, Mapping) for t in tools)):
        raise wrong("tools", "a list of objects")
    for tool in tools or ():
        if tool.get("type") != "function":
            raise ProxyError(
                "tools_not_supported",
                f"A tool of type {shown(str(tool.get('type')))} runs on its maker's own servers. Tools here "
                "are of type `function`, which the client runs.",
                param="tools",
            )


def _response_format(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """`text.format` as chat completions spell it: llama-server reads only that (15 §6)."""
    wanted = optional_object(optional_object(body, "text"), "format")
    kind = wanted.get("type")
    if kind in (None, "text"):
        return None
    if kind == "json_schema":
        return {"type": kind, "json_schema": {name: v for name, v in wanted.items() if name != "type"}}
    if kind == "json_object":
        return {"type": kind}
    raise wrong("text.format.type", "text, json_object or json_schema")
