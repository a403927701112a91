"""The editor of the manifest: show, check what is typed, preview, apply, go back, remedies as edits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import CSRF_FIELD, Visit, authorise, require_role, visit
from framework.api.errors import ApiError
from framework.api.lookup import find_model
from framework.api.manifest_routes import LARGEST_VERSION, STATUS, no_version, refused
from framework.api.turns import Turns
from framework.dashboard.answers import confirmed, operator_of, page_answer, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.forms import field, read_form
from framework.dashboard.htmx import wanted_block
from framework.dashboard.live_address import live_url, tag_now
from framework.dashboard.pages.manifest import (
    MOVED,
    NO_PREVIEW,
    Conflict,
    ManifestPage,
    Preview,
    VersionList,
    VersionPage,
    check_list,
    editor_form,
    manifest_url,
    preview_of,
    read_way,
    version_list,
    version_row,
    ways_page,
)
from framework.dashboard.pages.shell import Notice, Shell
from framework.dashboard.pages.text_changes import text_changes
from framework.editing.documents import ManifestFile
from framework.editing.editor import Edit
from framework.editing.placing import with_way
from framework.editing.refusal import EditRefused
from framework.editing.veil import veiled
from framework.manifest.document import MAX_FILE_BYTES
from framework.manifest.edit import EditImpossible
from framework.values.units_text import read_whole_number

# A form spells every byte that is no letter or digit with three.
FORM_LIMIT_BYTES = 3 * MAX_FILE_BYTES + 64 * 1024
NOT_WRITTEN = 500
PARTS = frozenset({"manifest-check", "manifest-preview"})


async def manifest(desk: Desk, request: Request) -> Response:
    """The text as it is on disk. Who may only look sees it with what may be secret hidden."""
    seen = visit(request, desk.services)
    async with desk.services.turns.alone(request, seen.caller.name):
        files = await desk.services.editor.files()
        file = _named(files, request.query_params.get("file", ""))
        page = await _page(desk, request, seen, files, file)
    return page_answer(desk, request, seen, "manifest.html", page)


async def check(desk: Desk, request: Request) -> Response:
    """What is wrong with a text that somebody types."""
    return await _shown(desk, request, is_preview=False)


async def preview(desk: Desk, request: Request) -> Response:
    """What applying a text would do."""
    return await _shown(desk, request, is_preview=True)


async def apply(desk: Desk, request: Request) -> Response:
    """Write a text. Refusals show the page with what was typed, and why."""
    async with _operators_form(desk, request, desk.services.applies) as (form, seen):
        text, base = _text_of(form), field(form, "base_sha256")
        files = await desk.services.editor.files()
        file = _named(files, field(form, "file"))
        try:
            edit = Edit(text, base, file.name, is_form=True)
            written = await desk.services.editor.apply(edit, by=seen.caller.name)
        except EditRefused as error:
            files = await desk.services.editor.files()
            file = _named(files, file.name)
            page = await _page(desk, request, seen, files, file, text=text, base=base, refusal=error)
            status = STATUS.get(error.reason.code, NOT_WRITTEN)
            return page_answer(desk, request, seen, "manifest.html", page, status)
    return _done(files, file.name, written.event.id)


async def revert(desk: Desk, request: Request) -> Response:
    """Put back a text of before."""
    async with _operators_form(desk, request, desk.services.applies) as (form, seen):
        number = _number(field(form, "version"))
        try:
            base = field(form, "base_sha256")
            written = await desk.services.editor.revert(number, base, by=seen.caller.name)
        except EditRefused as error:
            raise refused(error) from error
        except KeyError as error:
            raise no_version(number) from error
        files = await desk.services.editor.files()
    return _done(files, written.file, written.event.id)


async def version(desk: Desk, request: Request) -> Response:
    """A text of before. Only for those who may change the manifest, since nothing of it is hidden."""
    seen = operator_of(desk, request, "Only who may operate sees what the manifest held before.")
    number = _number(request.path_params["id"])
    async with desk.services.turns.alone(request, seen.caller.name):
        try:
            found, text = await desk.services.editor.version(number)
        except KeyError as error:
            raise no_version(number) from error
        files = await desk.services.editor.files()
        now = next((file.text for file in files if file.name == found.file), "")
        changes = await asyncio.to_thread(text_changes, "What going back changes in the file", now, text)
    shell = shell_of(desk, request, f"Version {number}", "manifest")
    page = VersionPage(shell, version_row(found, files), text, changes)
    return page_answer(desk, request, seen, "manifest_version.html", page)


async def remedies(desk: Desk, request: Request) -> Response:
    """What could be changed about the reasons of a model, each as the planner sees it."""
    seen = visit(request, desk.services)
    model = find_model(request.query_params.get("model", ""), desk.services).request.id
    shell = shell_of(desk, request, f"What would help {model}", "manifest")
    async with desk.services.turns.alone(request, seen.caller.name):
        ways = await desk.services.ways(model)
    page = ways_page(shell, model, ways)
    return page_answer(desk, request, seen, "manifest_ways.html", page)


async def remedy(desk: Desk, request: Request) -> Response:
    """The editor with a remedy in its text, and the preview of that. Nothing is written."""
    async with _operators_form(desk, request, desk.services.turns) as (form, seen):
        files = await desk.services.editor.files()
        try:
            way = read_way(field(form, "way"))
            edited = await asyncio.to_thread(with_way, files, field(form, "model"), way)
        except ValueError as error:
            raise ApiError(
                400, "invalid_body", "This form is not one of ours; load the page anew."
            ) from error
        except EditImpossible as error:
            raise ApiError(400, "edit_impossible", str(error)) from error
        text, base = edited.text, edited.file.sha256
        page = await _page(
            desk, request, seen, files, edited.file, text=text, base=base, is_preview=True, is_remedy=True
        )
    return page_answer(desk, request, seen, "manifest.html", page)


async def _shown(desk: Desk, request: Request, *, is_preview: bool) -> Response:
    async with _operators_form(desk, request, desk.services.turns) as (form, seen):
        files = await desk.services.editor.files()
        file = _named(files, field(form, "file"))
        text, base = _text_of(form), field(form, "base_sha256")
        page = await _page(desk, request, seen, files, file, text=text, base=base, is_preview=is_preview)
    return page_answer(desk, request, seen, "manifest.html", page)


async def _page(
    desk: Desk,
    request: Request,
    seen: Visit,
    files: Sequence[ManifestFile],
    file: ManifestFile,
    *,
    text: str | None = None,
    base: str = "",
    is_preview: bool = False,
    is_remedy: bool = False,
    refusal: EditRefused | None = None,
) -> ManifestPage:
    """The page with a text, that of the file where there is none."""
    operates, services = seen.caller.role == "operate", desk.services
    stream = live_url("manifest", tag_now(desk))
    shell = shell_of(desk, request, "Manifest", "manifest", stream)
    checked = await services.editor.check(text, file.name)
    base = base or file.sha256
    moved = MOVED if base != file.sha256 else ""
    found = check_list(checked.problems, file.name, moved)
    shown = text if text is not None else file.text if operates else await asyncio.to_thread(veiled, file)
    shown_preview, history = NO_PREVIEW, VersionList(())
    if operates:
        # Asked for with every pause of somebody who types: no more than what is shown.
        is_part = wanted_block(request.headers, PARTS) is not None
        history = history if is_part else version_list(await services.editor.versions(), files)
        if is_preview:
            shown_preview = await _preview(desk, file, shown)
    conflict = None
    if refusal is not None:
        shell = _with_refusal(shell, refusal)
        if refusal.reason.code == "manifest_changed":
            conflict = await _conflict(file, shown)
            base, found = file.sha256, replace(found, moved="")
    note = "A remedy was put into the text; nothing is written yet." if is_remedy else ""
    form = editor_form(files, file, shown, base, found, note)
    return ManifestPage(shell, form, found, shown_preview, conflict, history)


async def _preview(desk: Desk, file: ManifestFile, text: str) -> Preview:
    answer = await desk.services.diff(text, file.name)
    return await asyncio.to_thread(preview_of, answer, file.text, text)


async def _conflict(file: ManifestFile, text: str) -> Conflict:
    label = "From the file as it is now to what you typed"
    changes = await asyncio.to_thread(text_changes, label, file.text, text)
    return Conflict(changes, file.text, manifest_url(file.name))


def _with_refusal(shell: Shell, refusal: EditRefused) -> Shell:
    return replace(shell, notice=Notice("bad", refusal.reason.message, refusal.reason.remedy))


@asynccontextmanager
async def _operators_form(
    desk: Desk, request: Request, turns: Turns
) -> AsyncIterator[tuple[FormData, Visit]]:
    """The fields of a form whose sender may change the manifest, in its turn. Raises ApiError."""
    # First of all: nobody else makes us read this much.
    caller = require_role(visit(request, desk.services).caller, "operate")
    with turns.place(caller.name):
        form = await read_form(request, limit_bytes=FORM_LIMIT_BYTES)
        authorise(request, desk.services, "operate", csrf_token=field(form, CSRF_FIELD) or None)
        async with turns.turn(request):
            yield form, visit(request, desk.services)


def _text_of(form: FormData) -> str:
    """The text of the field; browsers send `\\r\\n`."""
    return field(form, "text").replace("\r\n", "\n")


def _named(files: Sequence[ManifestFile], name: str) -> ManifestFile:
    """The file of this name, the manifest itself for none. Raises ApiError 404."""
    found = next((file for file in files if name in ("", file.name)), None)
    if found is None:
        message = f"{name[:200]!r} is no file of this manifest (any more)."
        raise ApiError(404, "manifest_file_unknown", message)
    return found


def _number(text: str) -> int:
    number = read_whole_number(text, 1, LARGEST_VERSION)
    if number is None:
        raise no_version(repr(text[:20]))
    return number


def _done(files: Sequence[ManifestFile], name: str, event_id: int) -> Response:
    """Back to the editor, which confirms."""
    return confirmed(manifest_url("" if name == files[0].name else name), event_id)
