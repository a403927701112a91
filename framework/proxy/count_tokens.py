"""How many tokens a chat takes (08 §13): by the instance's own route, else by template and tokeniser.

Called by `small_routes`. Builds without the route count words only: a picture would not be in the number, so
that such a chat is refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.generation import BuildBody, Job, run_whole
from framework.proxy.interrupt import Interrupted
from framework.proxy.model_choice import ModelChoice
from framework.proxy.usage import count

OK = 200
COUNT_PATH = "/v1/chat/completions/input_tokens"
TEMPLATE_PATH = "/apply-template"


async def answer_count(exchange: Exchange, choice: ModelChoice, build: BuildBody, *, has_media: bool) -> None:
    """Answer with the number of tokens of the chat that `build` makes."""
    try:
        tokens = await exchange.run(lambda: _counted(exchange, choice, build, has_media=has_media))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted
    answer = {"object": "response.input_tokens", "input_tokens": tokens}
    await exchange.answer.send_json(OK, orjson.dumps(answer))


async def _counted(exchange: Exchange, choice: ModelChoice, build: BuildBody, *, has_media: bool) -> int:
    async def ask(path: str, body: BuildBody) -> Mapping[str, Any]:
        raw = await run_whole(Job(exchange.services, exchange.request, choice, path, body))
        return _object(raw)

    try:
        tokens = count(await ask(COUNT_PATH, build), "input_tokens")
    except ProxyError as error:
        if error.code != "not_supported":
            raise
        tokens = None
    if tokens is not None:
        return tokens
    if has_media:
        raise ProxyError(
            "count_needs_text", "This engine counts text only, and the chat holds media.", param="messages"
        )
    prompt = (await ask(TEMPLATE_PATH, build)).get("prompt")
    asked = {"content": prompt, "add_special": True}
    found = (await ask("/tokenize", lambda lease, live: asked)).get("tokens")
    if not isinstance(prompt, str) or not isinstance(found, list):
        raise ProxyError("tokenizer_failed", "The engine could not count the tokens of the prompt.")
    return len(found)


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError:
        answer = None
    return answer if isinstance(answer, dict) else {}
