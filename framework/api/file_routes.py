"""`/files`: the model files around the manifest, and what is in one of them (13 §3)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import describes
from framework.api.endpoint import Json
from framework.api.errors import ApiError
from framework.api.inspect_query import read_settings
from framework.api.services import Services
from framework.api.shapes import files_json, inspect_json
from framework.values.reason import Reason

UNUSABLE = 422
MISSING = 404


@describes("Files")
async def list_files(_request: Request, services: Services, _caller: Caller) -> Response:
    """The model files around the manifest."""
    return Json(files_json(await services.files.list()))


@describes("Inspection")
async def inspect_listed(request: Request, services: Services, _caller: Caller) -> Response:
    """Facts of one file of the list, and the memory of a launch with the settings of the query."""
    settings = read_settings(request.query_params)
    view = await services.files.inspect(request.path_params["id"], settings)
    if view.inspection is None:
        raise _unusable(view.file.fault)
    return Json(inspect_json(view.inspection))


def _unusable(fault: Reason | None) -> ApiError:
    """A file that no engine could load, or that went away while it was looked at."""
    if fault is None or fault.code == "model_missing":
        return ApiError(MISSING, "file_not_found", "The model file is gone.", param="id")
    return ApiError(UNUSABLE, fault.code, f"{fault.message} {fault.remedy}".strip(), param="id")
