"""GET and POST /lora-adapters: the adapters of the server and their scales (12 §17)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.asking import ask
from framework.nativeserver.core import LoraView
from framework.nativeserver.errors import ApiError
from framework.nativeserver.fields import adapter_scales
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import JsonResponse, read_any_json


async def list_endpoint(request: Request) -> Response:
    """Every adapter, in load order."""
    services = services_of(request)
    task = services.bridge.new_task()
    task.kind = "lora_get"
    result = await ask(request, services, task)
    return JsonResponse([adapter_json(view) for view in result.loras])


async def change_endpoint(request: Request) -> Response:
    """Replaces the server's scales; what the list leaves out is switched off."""
    services = services_of(request)
    body = await read_any_json(request)
    if not isinstance(body, list):
        raise ApiError("invalid_request", "The body must be an array of objects with 'id' and 'scale'")
    task = services.bridge.new_task()
    task.kind = "lora_set"
    task.lora_scales = adapter_scales(body)
    await ask(request, services, task)
    return JsonResponse({"success": True})


def adapter_json(view: LoraView) -> dict[str, Any]:
    """One adapter; an activated one also shows what calls it."""
    shape: dict[str, Any] = {
        "id": view.id,
        "path": view.path,
        "scale": view.scale,
        "task_name": view.task_name,
        "prompt_prefix": view.prompt_prefix,
    }
    if view.invocation_tokens:
        shape["alora_invocation_string"] = view.invocation_text
        shape["alora_invocation_tokens"] = list(view.invocation_tokens)
    return shape
