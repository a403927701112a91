"""The pages of the model files: the list, and one file with the memory it would take (13 §3)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import visit
from framework.api.inspect_query import INSPECT_QUERY, read_settings
from framework.api.routes import PREFIX
from framework.dashboard.answers import page_answer, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.pages.file import file_page
from framework.dashboard.pages.files import files_page
from framework.dashboard.urls import file_url, with_query


async def files(desk: Desk, request: Request) -> Response:
    """What model files there are. They change rarely, so nothing is sent by itself."""
    seen = visit(request, desk.services)
    answer = await desk.services.files.list()
    page = files_page(shell_of(desk, request, "Model files", "files"), answer)
    return page_answer(desk, request, seen, "files.html", page)


async def file(desk: Desk, request: Request) -> Response:
    """One of the listed files. The settings of its memory stand in the address."""
    seen = visit(request, desk.services)
    settings = read_settings(request.query_params)
    view = await desk.services.files.inspect(request.path_params["id"], settings)
    devices = tuple(device.name for device in desk.services.known_devices().devices)
    asked = {name: request.query_params.get(name, "") for name in INSPECT_QUERY}
    json_url = with_query(f"{PREFIX}{file_url(view.file.id)}/inspect", asked)
    shell = shell_of(desk, request, view.file.path.name, "files")
    return page_answer(desk, request, seen, "file.html", file_page(shell, view, settings, devices, json_url))
