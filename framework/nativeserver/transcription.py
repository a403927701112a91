"""POST /v1/audio/transcriptions: refused, since no model of this build hears (12 §3 row 21)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.errors import ApiError


async def endpoint(_request: Request) -> Response:
    """501."""
    raise ApiError("not_supported", "This server takes no audio: its engine is built without media support")
