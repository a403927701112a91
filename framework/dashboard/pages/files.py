"""The model files on this machine, as far as they lie where the manifest looks. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.api.model_files import FilesAnswer, ModelFile
from framework.dashboard.pages.shell import Shell
from framework.dashboard.urls import file_url, model_url
from framework.values.reason import Reason

ROLES = {"model": "", "projector": "projector: pictures and sound for a model", "drafter": "drafter"}


@dataclass(frozen=True)
class FileRow:
    """One file, or one set of shards. Texts are empty where the header says nothing."""

    name: str
    url: str
    folder: str
    title: str
    role: str
    parts: int
    size_bytes: int
    quantisation: str
    architecture: str
    context_train: int | None
    used_by: tuple[tuple[str, str], ...]
    fault: Reason | None
    is_read: bool


@dataclass(frozen=True)
class FilesPage:
    """Everything on `/files`. Folders come with whether they exist; nobody has read `unread` files yet."""

    shell: Shell
    folders: tuple[tuple[str, bool], ...]
    rows: tuple[FileRow, ...]
    complete: bool
    unread: int


def files_page(shell: Shell, answer: FilesAnswer) -> FilesPage:
    """The page of a list."""
    return FilesPage(
        shell=shell,
        folders=tuple((str(folder), folder not in answer.missing_folders) for folder in answer.folders),
        rows=tuple(row_of(file) for file in answer.files),
        complete=answer.complete,
        unread=answer.unread,
    )


def row_of(file: ModelFile) -> FileRow:
    """A file as a row; models of the manifest that use it come as names with addresses."""
    return FileRow(
        name=file.path.name,
        url=file_url(file.id),
        folder=str(file.path.parent),
        title=file.title or "",
        role=ROLES[file.role],
        parts=file.parts,
        size_bytes=file.size_bytes,
        quantisation=file.quantisation or "",
        architecture=file.architecture or "",
        context_train=file.context_train,
        used_by=tuple((name, model_url(name)) for name in file.used_by),
        fault=file.fault,
        is_read=file.is_read,
    )
