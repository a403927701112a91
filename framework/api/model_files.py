"""The model files around a manifest, and a look into each, for the API and the pages.

Only what is listed can be looked into, by an id that the list gives: no path comes from outside. All reading
happens in threads of its own, so that slow storage holds up nothing else. Made once by `app`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from framework.api.answers import DevicesAnswer
from framework.api.errors import ApiError
from framework.api.file_scan import FindLocal, Scan, id_of, scan_manifest
from framework.api.inspect_notes import InspectSettings
from framework.api.inspection import Inspection, inspect_file
from framework.models.companions import PROJECTOR_WORD
from framework.models.facts import FactsReader, ModelFacts
from framework.models.file_names import is_companion
from framework.models.folder import FoundModel
from framework.models.gguf_fields import GgufHeader
from framework.reconcile.current import CurrentManifest
from framework.values.engine import FileId
from framework.values.reason import Reason, Refused
from framework.values.request import ModelRequest, ModelSource

Role = Literal["model", "projector", "drafter"]

PROJECTOR_ARCHITECTURE = "clip"
# A list waits so long for headers; those it did not get to are read the next time it is asked for.
READ_LIMIT_S = 3.0
# Storage that does not answer within this is given up; its thread ends when it does.
ANSWER_LIMIT_S = 20.0
# So long names and sizes are as good as new.
FRESH_S = 2.0
THREADS = 2

T = TypeVar("T")


@dataclass(frozen=True)
class ModelFile:
    """One model, projector or drafter on this machine. What its header does not say is None.

    `fault` says why no engine could load it; with `is_read` false nobody has looked into it yet.
    """

    id: str
    path: Path
    size_bytes: int
    parts: int
    role: Role
    used_by: tuple[str, ...] = ()
    """Models of the manifest."""
    title: str | None = None
    architecture: str | None = None
    quantisation: str | None = None
    context_train: int | None = None
    fault: Reason | None = None
    is_read: bool = False


@dataclass(frozen=True)
class FilesAnswer:
    """The list. Not `complete` where the folders hold more than is ever listed; some may not exist."""

    folders: tuple[Path, ...] = ()
    files: tuple[ModelFile, ...] = ()
    complete: bool = True
    missing_folders: tuple[Path, ...] = ()

    @property
    def unread(self) -> int:
        """How many files nobody has looked into yet."""
        return sum(not file.is_read for file in self.files)


@dataclass(frozen=True)
class FileView:
    """One file in detail; where there is no `inspection`, the `fault` of the file says why."""

    file: ModelFile
    inspection: Inspection | None


class ModelFiles:
    """Lists files and looks into them. Remembers what it has read."""

    def __init__(
        self,
        current: CurrentManifest,
        find_local: FindLocal,
        reader: FactsReader,
        known_devices: Callable[[], DevicesAnswer],
        *,
        clock: Callable[[], float] = time.monotonic,
        read_limit_s: float = READ_LIMIT_S,
        answer_limit_s: float = ANSWER_LIMIT_S,
    ) -> None:
        self._current = current
        self._find_local = find_local
        self._reader = reader
        self._known_devices = known_devices
        self._clock = clock
        self._read_limit_s = read_limit_s
        self._answer_limit_s = answer_limit_s
        self._scan: Scan | None = None
        self._known: dict[tuple[FileId, ...], ModelFile] = {}
        self._threads = ThreadPoolExecutor(THREADS, "model-files")

    async def list(self) -> FilesAnswer:
        """All files. Raises ApiError 503 when the storage is too slow."""
        return await self._in_thread(self._list)

    async def inspect(self, file_id: str, settings: InspectSettings) -> FileView:
        """One file of the list, and the memory a launch would take. Raises ApiError 404 or 503."""
        view = await self._in_thread(partial(self._inspect, file_id, settings))
        if view is None:
            message = "There is no such model file; it may have been moved, renamed or deleted."
            raise ApiError(404, "file_not_found", message, param="id")
        return view

    async def header_of(self, request: ModelRequest) -> GgufHeader | None:
        """What the first file of a declared model says; None while it is not here, cannot be read, or is too
        slow to wait for."""
        work = partial(self._header_of, request.source)
        try:
            return await self._in_thread(work, self._read_limit_s)
        except (ApiError, Refused, OSError):
            return None

    def _header_of(self, source: ModelSource) -> GgufHeader | None:
        path = source.path
        if path is None:
            local = self._find_local(source)
            path = local.files[0] if local is not None and local.files else None
        return self._reader.glance(path).header if path is not None else None

    async def _in_thread(self, work: Callable[[], T], limit_s: float | None = None) -> T:
        job = asyncio.get_running_loop().run_in_executor(self._threads, work)
        limit_s = self._answer_limit_s if limit_s is None else limit_s
        try:
            return await asyncio.wait_for(job, limit_s)
        except TimeoutError:
            message = f"The model files could not be read within {limit_s:g} s."
            raise ApiError(503, "storage_slow", message, headers={"Retry-After": "5"}) from None

    def _list(self) -> FilesAnswer:
        scan = self._scanned()
        deadline_s = self._clock() + self._read_limit_s
        models = scan.found.models
        known = {found.files: self._known.get(found.files) for found in models}
        # What is at fault is read again, since it may be mended, but only after what nobody has seen yet.
        waiting = [
            found for found in models if (file := known[found.files]) is None or file.fault is not None
        ]
        for found in sorted(waiting, key=lambda found: known[found.files] is not None):
            if self._clock() >= deadline_s:
                break
            known[found.files] = self._read(found)
        self._known = {files: file for files, file in known.items() if file is not None}
        files = (
            replace(known[found.files] or _named(found), used_by=scan.users_of(found)) for found in models
        )
        return FilesAnswer(scan.folders, tuple(files), scan.found.complete, scan.missing_folders)

    def _inspect(self, file_id: str, settings: InspectSettings) -> FileView | None:
        scan = self._scanned()
        found = scan.with_id(file_id)
        if found is None or not found.path.exists():
            return None
        file = replace(_named(found), used_by=scan.users_of(found))
        try:
            devices = self._known_devices().devices
            inspection = inspect_file(found.path, settings, self._reader, devices)
        except Refused as refusal:
            return FileView(_faulty(file, refusal), None)
        return FileView(_described(file, inspection.facts), inspection)

    def _scanned(self) -> Scan:
        """Names and sizes as they are now, or were a moment ago."""
        scan, manifest, now_s = self._scan, self._current.manifest, self._clock()
        if scan is None or scan.manifest_sha256 != manifest.sha256 or now_s - scan.at_s > FRESH_S:
            scan = self._scan = scan_manifest(manifest, self._find_local, now_s)
        return scan

    def _read(self, found: FoundModel) -> ModelFile:
        file = _named(found)
        try:
            return _described(file, self._reader.glance(found.path))
        except Refused as refusal:
            return _faulty(file, refusal)


def _named(found: FoundModel) -> ModelFile:
    """What the name alone says."""
    name = found.path.name
    role: Role = "model"
    if is_companion(name):
        role = "projector" if PROJECTOR_WORD in name.lower() else "drafter"
    return ModelFile(id_of(found), found.path, found.size_bytes, len(found.files), role)


def _described(file: ModelFile, facts: ModelFacts) -> ModelFile:
    header = facts.header
    return replace(
        file,
        role="projector" if header.architecture == PROJECTOR_ARCHITECTURE else file.role,
        title=header.name,
        architecture=header.architecture,
        quantisation=facts.quantisation,
        context_train=header.context_length,
        is_read=True,
    )


def _faulty(file: ModelFile, refusal: Refused) -> ModelFile:
    return replace(file, fault=refusal.failure.reason, is_read=True)
