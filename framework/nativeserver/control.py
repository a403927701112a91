"""POST /v1/chat/completions/control: to end the reasoning of a running chat (12 §8.8)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.asking import ask
from framework.nativeserver.errors import ApiError
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import JsonResponse, read_json, read_text

ACTIONS = ("reasoning_end",)


async def endpoint(request: Request) -> Response:
    """Whether it was done, and if not why."""
    services = services_of(request)
    body = await read_json(request)
    completion_id, action = body.get("id"), body.get("action")
    if not isinstance(completion_id, str) or not completion_id:
        raise ApiError("invalid_request", "Field 'id': the id of a completion is missing")
    if action not in ACTIONS:
        raise ApiError("invalid_request", f"Field 'action': must be one of {', '.join(ACTIONS)}")
    task = services.bridge.new_task()
    task.kind, task.completion_id = "control", completion_id
    result = await ask(request, services, task)
    answer: dict[str, Any] = {"success": result.success}
    if result.text:
        answer["message"] = read_text(result.text)
    return JsonResponse(answer)
