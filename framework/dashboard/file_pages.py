"""The pages of the model files: the list, and one file with the memory it would take (13 §3)."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import visit
from framework.api.errors import ApiError
from framework.api.inspect_notes import InspectSettings
from framework.api.inspect_query import INSPECT_QUERY, read_settings
from framework.api.routes import PREFIX
from framework.dashboard.answers import page_answer, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.htmx import is_htmx
from framework.dashboard.pages.file import AskedSettings, file_page
from framework.dashboard.pages.files import files_page
from framework.dashboard.urls import file_url, with_query

OK, BAD_REQUEST = 200, 400


async def files(desk: Desk, request: Request) -> Response:
    """What model files there are. They change rarely, so nothing is sent by itself."""
    seen = visit(request, desk.services)
    answer = await desk.services.files.list()
    page = files_page(shell_of(desk, request, "Model files", "files"), answer)
    return page_answer(desk, request, seen, "files.html", page)


async def file(desk: Desk, request: Request) -> Response:
    """One of the listed files. The settings of its memory stand in the address; where one makes no sense, the
    page shows the form again with what was typed, and why."""
    seen = visit(request, desk.services)
    asked, status = _asked(request)
    view = await desk.services.files.inspect(request.path_params["id"], asked.settings)
    devices = tuple(device.name for device in desk.services.known_devices().devices)
    json_url = with_query(f"{PREFIX}{file_url(view.file.id)}/inspect", {} if asked.faults else asked.texts)
    page = file_page(shell_of(desk, request, view.file.path.name, "files"), view, asked, devices, json_url)
    return page_answer(desk, request, seen, "file.html", page, status)


def _asked(request: Request) -> tuple[AskedSettings, int]:
    """The settings of the address, and the status of the page. A script gets a fault as a notice."""
    texts = {name: request.query_params.get(name, "") for name in INSPECT_QUERY}
    faults: dict[str, str] = {}
    while True:
        try:
            settings = read_settings({name: text for name, text in texts.items() if name not in faults})
        except ApiError as error:
            if is_htmx(request.headers) or error.param is None or error.param in faults:
                raise
            faults[error.param] = error.message
        else:
            return AskedSettings(InspectSettings() if faults else settings, texts, faults), _status(faults)


def _status(faults: Mapping[str, str]) -> int:
    return BAD_REQUEST if faults else OK
