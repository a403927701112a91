"""`/manifest`: its files, check and preview of a text, apply, going back, remedies as edits (13 §8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import describes
from framework.api.endpoint import Endpoint, Json
from framework.api.errors import ApiError
from framework.api.inputs import bad_value, json_object, only_fields, only_parameters
from framework.api.lookup import find_model
from framework.api.services import Services
from framework.api.shapes import check_json, diff_json, problem_json
from framework.api.shapes.manifest import manifest_json, version_json, way_json, written_json
from framework.api.turns import Turns
from framework.editing.documents import files_of
from framework.editing.editor import Edit
from framework.editing.placing import with_changes
from framework.editing.refusal import EditRefused
from framework.editing.text_diff import as_text, diff_lines
from framework.editing.veil import veiled
from framework.manifest.edit import Change, EditImpossible
from framework.values.units_text import read_whole_number, whole_number_text

WAYS_QUERY = ("model",)
STATUS: Mapping[str, int] = {
    "manifest_changed": 409,
    "manifest_invalid": 400,
    "manifest_file_unknown": 404,
    "manifest_read_only": 403,
}
"""By the code of the reason. The others are for whoever runs the machine."""
NOT_WRITTEN = 500
MOST_CHANGES = 20
LARGEST_VERSION = 2**31


def manifest_endpoints(services: Services) -> dict[str, Endpoint]:
    """The routes below `/api/v1`."""
    return {
        "/manifest": Endpoint(services, {"GET": _manifest}),
        "/manifest/check": Endpoint(services, {"POST": _check}),
        "/manifest/diff": Endpoint(services, {"POST": _diff}),
        "/manifest/edit": Endpoint(services, {"POST": _edit}),
        "/manifest/apply": Endpoint(services, {"POST": _apply}),
        "/manifest/revert": Endpoint(services, {"POST": _revert}),
        "/manifest/history": Endpoint(services, {"GET": _history}, to_look="operate"),
        "/manifest/history/{id}": Endpoint(services, {"GET": _version}, to_look="operate"),
        "/manifest/remedies": Endpoint(services, {"GET": _remedies}, WAYS_QUERY),
    }


def refused(error: EditRefused) -> ApiError:
    """An edit that was not written, as an answer."""
    reason = error.reason
    answer = ApiError(STATUS.get(reason.code, NOT_WRITTEN), reason.code, f"{reason.message} {reason.remedy}")
    answer.reason = reason
    if error.problems:
        answer.extra["problems"] = [problem_json(problem) for problem in error.problems]
    return answer


def no_version(number: object) -> ApiError:
    """Nothing is kept under this number."""
    message = f"There is no version {number} of the manifest; the history lists what is kept."
    return ApiError(404, "version_not_found", message)


@describes("ManifestText")
async def _manifest(request: Request, services: Services, caller: Caller) -> Response:
    """The files as they are now, with what is wrong with them."""
    async with services.turns.alone(request, caller.name):
        loaded = await services.editor.check()
        files = files_of(loaded)
        show = (lambda file: file.text) if caller.role == "operate" else veiled
        texts = await asyncio.to_thread(lambda: [(file, show(file)) for file in files])
    path = services.current.manifest.path
    return Json(manifest_json(path, loaded.sha256, loaded.problems, texts))


@describes("Check", body="Text")
async def _check(request: Request, services: Services, caller: Caller) -> Response:
    """What is wrong with a manifest."""
    async with _body(request, services.turns, caller) as body:
        text, file = await _text_of(body, services)
        loaded = await services.check(text, file)
    return Json(check_json(services.current.manifest.path, loaded.sha256, loaded.problems))


@describes("Diff", body="Text")
async def _diff(request: Request, services: Services, caller: Caller) -> Response:
    """What applying a manifest would do, with memory before and after."""
    async with _body(request, services.turns, caller) as body:
        text, file = await _text_of(body, services)
        answer = await services.diff(text, file)
    return Json(diff_json(answer))


@describes("Edited", body="Edits")
async def _edit(request: Request, services: Services, caller: Caller) -> Response:
    """The text of a file with single values changed, comments kept; nothing is written."""
    async with _body(request, services.turns, caller) as body:
        only_fields(body, ("file", "edits"))
        changes = _changes(body.get("edits"))
        file = await _file(services, _optional_text(body, "file"))
        try:
            edited = await asyncio.to_thread(with_changes, file, changes)
        except EditImpossible as error:
            raise ApiError(400, "edit_impossible", str(error), param="edits") from error
    return Json({"file": file.name, "base_sha256": file.sha256, "text": edited.text})


@describes("Applied", status=202, body="Apply")
async def _apply(request: Request, services: Services, caller: Caller) -> Response:
    """Write a new text of a file of the manifest; it is then applied as any change of the file."""
    async with _body(request, services.applies, caller) as body:
        only_fields(body, ("text", "base_sha256", "file"))
        text, base = _needed_text(body, "text"), _needed_text(body, "base_sha256")
        edit = Edit(text, base, _optional_text(body, "file"))
        try:
            written = await services.editor.apply(edit, by=caller.name)
        except EditRefused as error:
            raise refused(error) from error
    return Json(written_json(written), 202)


@describes("Applied", status=202, body="Revert")
async def _revert(request: Request, services: Services, caller: Caller) -> Response:
    """Put back what a file held before an apply, the last one unless a version is named."""
    async with _body(request, services.applies, caller) as body:
        only_fields(body, ("version", "base_sha256"))
        number = body.get("version")
        if number is not None and (type(number) is not int or not 0 < number <= LARGEST_VERSION):
            raise bad_value("version", str(number), whole_number_text(1, LARGEST_VERSION))
        base = _optional_text(body, "base_sha256")
        try:
            written = await services.editor.revert(number, base, by=caller.name)
        except EditRefused as error:
            raise refused(error) from error
        except KeyError as error:
            raise no_version("" if number is None else number) from error
    return Json(written_json(written), 202)


@describes("History")
async def _history(_request: Request, services: Services, _caller: Caller) -> Response:
    """The texts that were replaced by applies, newest first."""
    versions = await services.editor.versions()
    return Json({"versions": [version_json(version) for version in versions]})


@describes("Version")
async def _version(request: Request, services: Services, caller: Caller) -> Response:
    """One text that was replaced, and what putting it back would change."""
    only_parameters(request, ())
    given = request.path_params["id"]
    number = read_whole_number(given, 1, LARGEST_VERSION)
    if number is None:
        raise no_version(repr(given[:20]))
    async with services.turns.alone(request, caller.name):
        try:
            version, text = await services.editor.version(number)
        except KeyError as error:
            raise no_version(number) from error
        files = await services.editor.files()
        now = next((file.text for file in files if file.name == version.file), "")
        lines = await asyncio.to_thread(diff_lines, now, text)
    return Json({**version_json(version), "text": text, "diff": as_text(lines)})


@describes("Remedies")
async def _remedies(request: Request, services: Services, caller: Caller) -> Response:
    """Edits that may help against the reasons of a model, each with what the planner makes of it."""
    name = request.query_params.get("model")
    if not name:
        raise bad_value("model", "nothing", "the name or alias of a model")
    model = find_model(name, services).request.id
    async with services.turns.alone(request, caller.name):
        ways = await services.ways(model)
    return Json({"model": model, "remedies": [way_json(way) for way in ways]})


@asynccontextmanager
async def _body(request: Request, turns: Turns, caller: Caller) -> AsyncIterator[dict[str, Any]]:
    """The body of a request, in its turn."""
    with turns.place(caller.name):
        body = await json_object(request)
        async with turns.turn(request):
            yield body


async def _text_of(body: dict[str, Any], services: Services) -> tuple[str | None, str | None]:
    """The text to look at and the file it is of; no text is the files as they are on disk."""
    only_fields(body, ("text", "file"))
    text, name = body.get("text"), _optional_text(body, "file")
    if text is not None and not isinstance(text, str):
        raise bad_value("text", type(text).__name__, "the text of a manifest")
    if name is not None:
        await _file(services, name)
    return text, name


async def _file(services: Services, name: str | None) -> Any:
    try:
        return await services.editor.file(name)
    except EditRefused as error:
        raise refused(error) from error


def _optional_text(body: dict[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else _needed_text(body, name)


def _needed_text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise bad_value(name, "nothing" if value is None else type(value).__name__, "a text")
    return value


def _changes(given: object) -> tuple[Change, ...]:
    allowed = f'1 to {MOST_CHANGES} of {{"path": ["models", NAME, FIELD], "value": VALUE}}'
    if not isinstance(given, list) or not 0 < len(given) <= MOST_CHANGES:
        raise bad_value("edits", type(given).__name__, allowed)
    changes = []
    for one in given:
        path = one.get("path") if isinstance(one, dict) else None
        is_path = isinstance(path, list) and len(path) > 1 and all(isinstance(part, str) for part in path)
        if not is_path or not set(one) <= {"path", "field", "value"} or "value" not in one:
            raise bad_value("edits", str(one), allowed)
        changes.append(Change(tuple(one["path"]), one["value"]))
    return tuple(changes)
