"""The files that make up a model, and whether they can be served at all (02 §3.1-3.3, 06 §14.2).

Called at plan time, in a worker thread, before an older instance of the model is touched. Local files only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from framework.models.file_names import Shard, shard
from framework.models.gguf_header import CHANGED, os_cause
from framework.models.gguf_stream import HeaderStatus
from framework.models.gguf_tensors import TensorResult, read_tensors
from framework.models.split_set import set_fault, set_notes
from framework.values.engine import FileId
from framework.values.reason import Failure, Reason, Refused

SHOWN_MISSING = 3
WORDS: dict[HeaderStatus, str] = {
    "not_gguf": "is not a GGUF file",
    "corrupt": "is damaged",
    "truncated": "is cut off",
}
"""How a status reads; where there is none, the detail says everything."""
REMEDIES: dict[HeaderStatus, str] = {
    "not_gguf": "Name a .gguf file; other formats have to be converted first.",
    "corrupt": "Get the file again, and compare its checksum.",
    "truncated": "Finish the download or copy, or get the file again.",
    "big_endian": "Get the little-endian variant of the file.",
    "unsupported_version": "Get a newer conversion of the model.",
    "unreadable": "Correct the path, or the permissions of the file.",
}
WAIT = "Wait until whatever writes the file is done, then load the model again."


@dataclass(frozen=True)
class FileSet:
    """A model on disk: the file that is given to the engine, its other shards, their identities together."""

    main: Path
    shards: tuple[Path, ...]
    files: tuple[FileId, ...]
    """`main` first, then the shards in order."""
    notes: tuple[Reason, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size for file in self.files)


def resolve_files(path: Path) -> FileSet:
    """The set that `path` belongs to; any shard names the whole set.

    Raises `Refused` with `model_missing` or `incomplete_set`, and `bad_model_file` where a file cannot be
    looked at or can be no shard. What the files hold is not examined.
    """
    own = shard(path.name)
    identity = _identity(path)  # a shard that is named but not there is missing, whatever stands beside it
    if own is None:
        return FileSet(path, (), (identity,))
    if not own.possible:
        raise _impossible(path, own)
    members = _members(path, own)
    wanted = range(1, int(own.total) + 1)
    missing = [index for index in wanted if index not in members]
    if missing:
        raise _incomplete(path, own, missing)
    main, *others = (members[index] for index in wanted)
    files = tuple(_identity(file) for file in (main, *others))
    return FileSet(main, tuple(others), files, () if path == main else (_other_shard(path, main),))


def check_model_file(path: Path) -> FileSet:
    """`read_set`, for callers that need no facts."""
    return read_set(path)[0]


def read_set(
    path: Path, read: Callable[[FileId], TensorResult] | None = None
) -> tuple[FileSet, tuple[TensorResult, ...]]:
    """`resolve_files`, and every file read as far as its tensor directory, by `read` where one is given.

    Raises `Refused` with `bad_model_file` where an engine could only fail, the evidence holding `status`
    (02 §2.5) and `path`, and with `shard_set_inconsistent` for files that do not belong together.
    """
    found = resolve_files(path)
    results = tuple(read(file) if read else read_tensors(file.path) for file in found.files)
    paths = [file.path for file in found.files]
    fault = set_fault(paths, results)
    if fault is not None:
        raise Refused(Failure(fault))
    for file, result in zip(paths, results, strict=True):
        if result.status != "ok":
            raise _bad_file(file, result.status, result.detail, **_sizes(result))
    return replace(found, notes=(*found.notes, *set_notes(paths, results))), results


def _members(path: Path, own: Shard) -> dict[int, Path]:
    """Shards of the same prefix and total in the directory of `path`, by index."""
    members = {own.index: path}
    try:
        names = sorted(file.name for file in path.parent.iterdir())
    except OSError as error:
        raise _bad_file(path.parent, "unreadable", os_cause(error)) from None
    for name in names:
        other = shard(name)
        if other and (other.prefix, other.total) == (own.prefix, own.total):
            members.setdefault(other.index, path.parent / name)
    return members


def _identity(path: Path) -> FileId:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(path) from None
    except OSError as error:
        raise _bad_file(path, "unreadable", os_cause(error)) from None
    return FileId(path, status.st_size, status.st_mtime_ns)


def _missing(path: Path) -> Refused:
    reason = Reason(
        "model_missing",
        f"{path} does not exist.",
        "Put the model file there, or correct the path.",
        "error",
        {"path": str(path)},
    )
    return Refused(Failure(reason))


def _incomplete(path: Path, own: Shard, missing: list[int]) -> Refused:
    names = [own.name(index) for index in missing]
    more = f" and {len(names) - SHOWN_MISSING} more" if len(names) > SHOWN_MISSING else ""
    reason = Reason(
        "incomplete_set",
        f"{len(names)} of {int(own.total)} files of the model are missing in {path.parent}: "
        f"{', '.join(names[:SHOWN_MISSING])}{more}.",
        "Put all files of the set into one directory.",
        "error",
        {"path": str(path), "missing": names[:SHOWN_MISSING], "missing_count": len(names)},
    )
    return Refused(Failure(reason))


def _bad_file(path: Path, status: HeaderStatus, detail: str, **more: int) -> Refused:
    word = WORDS.get(status)
    message = f"{path} {word} ({detail})." if status == "not_gguf" else f"{path} {word}: {detail}."
    if word is None:
        message = f"{path} {detail}."
    evidence = {"path": str(path), "status": status, "detail": detail, **more}
    remedy = WAIT if detail == CHANGED else REMEDIES[status]
    return Refused(Failure(Reason("bad_model_file", message, remedy, "error", evidence)))


def _sizes(result: TensorResult) -> dict[str, int]:
    """What a file has and would have to have, where only its data is cut off."""
    if not result.missing_bytes:
        return {}
    needed_bytes = result.needed_bytes
    return {"file_bytes": needed_bytes - result.missing_bytes, "needed_bytes": needed_bytes}


def _impossible(path: Path, own: Shard) -> Refused:
    message = (
        f"{path} can be no shard: there is no number {own.index} among {int(own.total)}, counted from 1."
    )
    evidence = {"path": str(path), "status": "impossible_name"}
    return Refused(
        Failure(Reason("bad_model_file", message, "Give the file its right name back.", "error", evidence))
    )


def _other_shard(path: Path, main: Path) -> Reason:
    return Reason(
        "other_shard_named",
        f"{path.name} is a later shard; engines start with {main.name}, so that is used.",
        f"Name {main.name} as the source.",
        "info",
        {"path": str(path), "main": str(main)},
    )
