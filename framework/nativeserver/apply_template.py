"""Routes that only make a prompt: apply-template (12 §14.3) and the counters of tokens (12 §10.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from framework.nativeserver.chat_request import prepare_off_loop
from framework.nativeserver.off_loop import is_large, off_loop_if
from framework.nativeserver.prompt_input import count_text
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.transport import JsonResponse, read_json


async def apply_template(request: Request) -> Response:
    """`POST /apply-template`: the prompt of a chat, without inference."""
    body, services = await read_json(request), services_of(request)
    prepared = await prepare_off_loop(body, services)
    return await off_loop_if(is_large(prepared.prompt), JsonResponse, {"prompt": prepared.prompt})


async def count_oai(request: Request) -> Response:
    """The counters of OpenAI's interface, for chat bodies."""
    body, services = await read_json(request), services_of(request)
    await services.bridge.ready_or_wake()
    return JsonResponse(
        {
            "object": "response.input_tokens",
            "input_tokens": await count_tokens(request.receive, body, services),
        }
    )


async def count_tokens(receive: Receive, body: Mapping[str, Any], services: Services) -> int:
    """Tokens of the prompt of a chat body. Raises ApiError, and ClientGone."""
    prepared = await prepare_off_loop(body, services)
    return await count_text(receive, prepared.prompt, services.bridge)
