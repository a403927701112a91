"""Routes that generate no text: embeddings, ranking, tokens, templates, counts (08 §7.9, 12 §12-14).

Each goes to the instance's route of the same name. Called by `routes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.count_tokens import TEMPLATE_PATH, answer_count
from framework.proxy.exchange import Exchange
from framework.proxy.fields import wrong
from framework.proxy.generation import BuildBody
from framework.proxy.leased_body import leased_body
from framework.proxy.media import Medium, check_media_support, media_of, prepare_messages
from framework.proxy.model_choice import ModelChoice
from framework.proxy.request_body import CHAT_BODY, whole_body
from framework.proxy.tool_history import prepare_tool_history
from framework.proxy.vision import vision_models
from framework.proxy.whole_calls import forward_whole
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings

LONGEST_ID = 2**31 - 1


async def embeddings(exchange: Exchange) -> None:
    """Vectors of texts, or the engine's 501 where a model was not started for them."""
    body = await exchange.read_object()
    if body.get("input") is None:
        raise wrong("input", "a text, or a list of texts or of tokens")
    await _forward(exchange, body, "/v1/embeddings", tells_model=True)


async def engine_embeddings(exchange: Exchange) -> None:
    """The same in llama-server's own form: a list."""
    await _forward(exchange, await exchange.read_object(), "/embeddings")


async def rerank(exchange: Exchange) -> None:
    """Documents in the order in which they answer a question."""
    body = await exchange.read_object()
    if body.get("query") == "":
        # llama-server b10068 ends where nothing is asked of nothing.
        raise wrong("query", "a text that is not empty")
    await _forward(exchange, body, "/v1/rerank")


async def tokenize(exchange: Exchange) -> None:
    """A text as tokens."""
    body = await exchange.read_object()
    content = body.get("content")
    if content is not None and not isinstance(content, str | list):
        raise wrong("content", "text, or a list of texts and tokens")
    await _send(exchange, body, "/tokenize")


async def detokenize(exchange: Exchange) -> None:
    """Tokens as a text."""
    body = await exchange.read_object()
    tokens = body.get("tokens")
    if tokens is not None and not _are_tokens(tokens):
        raise wrong("tokens", "a list of token ids, whole numbers from 0")
    await _send(exchange, body, "/detokenize")


async def apply_template(exchange: Exchange) -> None:
    """The prompt that a chat becomes."""
    choice, build, _ = await _chat(exchange)
    await forward_whole(exchange, choice, TEMPLATE_PATH, build)


async def count_chat_tokens(exchange: Exchange) -> None:
    """How many tokens a chat takes (08 §13)."""
    choice, build, media = await _chat(exchange)
    await answer_count(exchange, choice, build, has_media=bool(media))


async def _forward(
    exchange: Exchange, body: Mapping[str, Any], path: str, *, tells_model: bool = False
) -> None:
    """Under the instance's own model name."""
    choice = exchange.choose_model(body.get("model"))

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        return whole_body(body, model_id=lease.model)

    await forward_whole(exchange, choice, path, build, tells_model=tells_model, is_work=True)


async def _send(exchange: Exchange, body: Mapping[str, Any], path: str) -> None:
    choice = exchange.choose_model(body.get("model"))
    asked = {name: value for name, value in body.items() if name != "model"}
    await forward_whole(exchange, choice, path, lambda lease, live: asked)


async def _chat(exchange: Exchange) -> tuple[ModelChoice, BuildBody, frozenset[Medium]]:
    """A chat that is not answered: its model, its body with everything that shapes the prompt, its media."""
    body = await exchange.read_object()
    choice = exchange.choose_model(body.get("model"))
    media, seeing = media_of(body), vision_models(exchange)
    can_see = choice.request.projector is not None
    check_media_support(media, model=choice.request, can_see=can_see, can_hear=can_see, vision_models=seeing)
    asked = {**body, "messages": prepare_tool_history(prepare_messages(body))}

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        check_media_support(
            media, model=lease.request, can_see=lease.vision, can_hear=lease.audio, vision_models=seeing
        )
        built = leased_body(exchange, asked, CHAT_BODY, lease, live)
        return {name: value for name, value in built.items() if name not in ("stream", "stream_options")}

    return choice, build, media


def _are_tokens(tokens: object) -> bool:
    """Whether this is a list of ids; llama-server calls anything else an error of its own (15 §5)."""
    return isinstance(tokens, list) and all(
        isinstance(token, int) and not isinstance(token, bool) and 0 <= token <= LONGEST_ID
        for token in tokens
    )
