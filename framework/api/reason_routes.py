"""`/reasons`: what every code of a reason means, and what to do about it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import describes
from framework.api.endpoint import Json
from framework.api.reason_guide import reasons_json
from framework.api.services import Services


@describes("Reasons")
async def list_reasons(_request: Request, services: Services, _caller: Caller) -> Response:
    """What every code of a reason means."""
    return Json(reasons_json(services.reasons))
