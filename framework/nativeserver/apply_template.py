"""Routes that only make a prompt: apply-template (12 §14.3) and the counters of tokens (12 §10.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.chat_request import prepare
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.transport import JsonResponse, read_json


async def apply_template(request: Request) -> Response:
    """`POST /apply-template`: the prompt of a chat, without inference."""
    body = await read_json(request)
    return JsonResponse({"prompt": prepare(body, services_of(request)).prompt})


async def count_oai(request: Request) -> Response:
    """The counters of OpenAI's interface, for chat bodies."""
    body, services = await read_json(request), services_of(request)
    await services.bridge.ready_or_wake()
    return JsonResponse({"object": "response.input_tokens", "input_tokens": count_tokens(body, services)})


def count_tokens(body: Mapping[str, Any], services: Services) -> int:
    """Tokens of the prompt of a chat body. Raises ApiError."""
    prompt = prepare(body, services).prompt
    return len(services.bridge.tokenize(prompt, add_special=True, parse_special=True))
