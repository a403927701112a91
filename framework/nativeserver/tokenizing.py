"""POST /tokenize and /detokenize: between text and token ids (12 §14.1-14.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.field_table import Field, fault, read_field, wrong_type
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.prompt_input import text_length
from framework.nativeserver.services import services_of
from framework.nativeserver.text_work import AT_ONCE
from framework.nativeserver.transport import JsonResponse, read_json, read_text

MOST_PIECES = 2**18
"""Of one answer: each is an object of some 300 bytes until it is sent."""


async def tokenize_endpoint(request: Request) -> Response:
    """Ids, or ids with their pieces; none for a body without content."""
    bridge = services_of(request).bridge
    body = await read_json(request)
    content = body.get("content")
    n_chars = await off_loop_if(is_large(content), text_length, content)
    if n_chars <= AT_ONCE:
        return await off_loop_if(is_large(content), _tokenized, body, bridge)
    return await bridge.text_work.run(request.receive, n_chars, _tokenized, body, bridge)


async def detokenize_endpoint(request: Request) -> Response:
    """The text of ids; empty for a body without tokens."""
    bridge = services_of(request).bridge
    body = await read_json(request)
    return await off_loop_if(is_large(body), _detokenized, body, bridge)


def _tokenized(body: Mapping[str, Any], bridge: EngineBridge) -> JsonResponse:
    add_special = _switch(body, "add_special", False)
    parse_special = _switch(body, "parse_special", True)
    with_pieces = _switch(body, "with_pieces", False)
    tokens: list[int] = []
    for place, part in enumerate(_parts(body.get("content"))):
        if isinstance(part, str):
            tokens += bridge.tokenize(
                part, add_special=add_special and place == 0, parse_special=parse_special
            )
        else:
            tokens.append(_known_id("content", part, bridge))
    if with_pieces:
        if len(tokens) > MOST_PIECES:
            raise fault("with_pieces", f"{len(tokens)} tokens; at most {MOST_PIECES} are told with pieces")
        pieces = [{"id": token, "piece": _piece(token, bridge)} for token in tokens]
        return JsonResponse({"tokens": pieces})
    return JsonResponse({"tokens": tokens})


def _detokenized(body: Mapping[str, Any], bridge: EngineBridge) -> JsonResponse:
    tokens = body.get("tokens")
    if tokens is None:
        tokens = []
    if not isinstance(tokens, list):
        raise wrong_type("tokens", "array", tokens)
    known = [_known_id("tokens", token, bridge) for token in tokens]
    return JsonResponse({"content": read_text(bridge.detokenize(known))})


def _switch(body: Mapping[str, Any], name: str, otherwise: bool) -> bool:
    value = read_field(Field((name,), "boolean"), body, {})
    return otherwise if value is None else bool(value)


def _parts(content: Any) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise wrong_type("content", "string, or an array of strings and token ids", content)
    return content


def _known_id(name: str, value: Any, bridge: EngineBridge) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise fault(name, "must hold token ids" + (" and strings" if name == "content" else ""))
    n_vocab = bridge.meta.n_vocab
    if not 0 <= value < n_vocab:
        raise fault(name, f"token {value} is not in the vocabulary, whose ids are 0 to {n_vocab - 1}")
    return value


def _piece(token: int, bridge: EngineBridge) -> str | list[int]:
    """Part of a character can't be written as text."""
    piece = bridge.piece(token)
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
