"""GET /health: whether the engine can be asked (12 §3.1)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.transport import JsonResponse


async def endpoint(_request: Request) -> Response:
    """Good whenever it is reached: gate answers for an engine that loads or has failed."""
    return JsonResponse({"status": "ok"})
