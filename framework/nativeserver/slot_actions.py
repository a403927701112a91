"""POST /slots/{id}?action=save|restore|erase (12 §15.5-15.7)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.nativeserver.asking import ask
from framework.nativeserver.core import Result
from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import wrong_type
from framework.nativeserver.services import Services, services_of
from framework.nativeserver.slot_files import slot_file
from framework.nativeserver.slots import IDLE
from framework.nativeserver.transport import JsonResponse, read_json

ERASE = "erase"
ACTIONS = ("save", "restore", ERASE)


async def endpoint(request: Request) -> Response:
    """What the action did; waits for the slot's request unless the query has `wait=0`."""
    services = services_of(request)
    action = request.query_params.get("action", "")
    if action not in ACTIONS:
        raise ApiError("invalid_request", "Invalid action")
    folder = services.options.slot_save_path
    if action != ERASE and folder is None:
        raise ApiError(
            "not_supported", "This server does not save slots. Start it with `--slot-save-path FOLDER`"
        )
    id_slot = _slot_number(request.path_params["id_slot"], services)
    task = services.bridge.new_task()
    task.kind, task.id_slot = f"slot_{action}", id_slot
    if action != ERASE and folder is not None:
        task.file_name = await _file_name(request)
        task.file_path = str(slot_file(folder, task.file_name))
    if request.query_params.get("wait") == "0" and _is_busy(id_slot, services):
        raise ApiError("unavailable", f"Slot {id_slot} is busy")
    return JsonResponse(_shape(action, id_slot, task.file_name, await ask(request, services, task)))


def _slot_number(text: str, services: Services) -> int:
    is_plain = text.isascii() and text.isdigit() and len(text) <= 9
    if not is_plain or int(text) >= services.bridge.n_slots:
        raise ApiError("invalid_request", "Invalid slot ID")
    return int(text)


async def _file_name(request: Request) -> str:
    body = await read_json(request)
    name = body.get("filename")
    if name is None:
        raise ApiError("invalid_request", "Field 'filename': is missing")
    if not isinstance(name, str):
        raise wrong_type("filename", "string", name)
    return name


def _is_busy(id_slot: int, services: Services) -> bool:
    return any(view.id == id_slot and view.state != IDLE for view in services.bridge.snapshot().slots)


def _shape(action: str, id_slot: int, file_name: str, result: Result) -> dict[str, Any]:
    if action == ERASE:
        return {"id_slot": id_slot, "n_erased": result.n_slot_tokens}
    tokens, n_bytes = ("n_saved", "n_written") if action == "save" else ("n_restored", "n_read")
    return {
        "id_slot": id_slot,
        "filename": file_name,
        tokens: result.n_slot_tokens,
        n_bytes: result.n_bytes,
        "timings": {f"{action}_ms": result.action_ms},
    }
