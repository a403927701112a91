"""The files that make up a model, and whether they can be served at all (02 §3.1-3.3, 06 §14.2).

Called at plan time, in a worker thread, before an older instance of the model is touched. Local files only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from framework.models.gguf_header import os_cause
from framework.models.gguf_stream import HeaderStatus
from framework.models.gguf_tensors import read_tensors
from framework.values.engine import FileId
from framework.values.reason import Failure, Reason, Refused

SHARD_NAME = re.compile(
    r"(?P<prefix>.+)-(?P<index>\d{5})-of-(?P<total>\d{5})\.gguf", re.IGNORECASE | re.ASCII | re.DOTALL
)
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
    "unreadable": "Correct the model's source, or the permissions of the file.",
}


@dataclass(frozen=True)
class FileSet:
    """A model on disk: the file that is given to the engine, its other shards, their identities together."""

    main: Path
    shards: tuple[Path, ...]
    files: tuple[FileId, ...]
    """`main` first, then the shards in order."""

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class _Shard:
    prefix: str
    index: int
    total: str


def resolve_files(path: Path) -> FileSet:
    """The set that `path` belongs to; any shard names the whole set.

    Raises `Refused` with `model_missing` or `incomplete_set`, and `bad_model_file` where a file cannot be
    looked at. What the files hold is not examined.
    """
    shard = _shard(path.name)
    if shard is None:
        return FileSet(path, (), (_identity(path),))
    _identity(path)  # a shard that is named but not there is missing, whatever stands beside it
    members = _members(path, shard)
    wanted = range(1, int(shard.total) + 1)
    missing = [index for index in wanted if index not in members]
    if missing:
        raise _incomplete(path, shard, missing)
    main, *others = (members[index] for index in wanted)
    return FileSet(main, tuple(others), tuple(_identity(file) for file in (main, *others)))


def check_model_file(path: Path) -> FileSet:
    """`resolve_files`, and every file read as far as its tensor directory.

    Raises `Refused` with `bad_model_file` where an engine could only fail;
    the evidence holds `status` (02 §2.5) and `path`.
    """
    found = resolve_files(path)
    for file in found.files:
        result = read_tensors(file.path)
        if result.status != "ok":
            raise _bad_file(file.path, result.status, result.detail)
    return found


def _shard(name: str) -> _Shard | None:
    match = SHARD_NAME.fullmatch(name)
    if match is None or not 1 <= int(match["index"]) <= int(match["total"]):
        return None
    return _Shard(match["prefix"], int(match["index"]), match["total"])


def _members(path: Path, shard: _Shard) -> dict[int, Path]:
    """Shards of the same prefix and total in the directory of `path`, by index."""
    members = {shard.index: path}
    try:
        names = sorted(file.name for file in path.parent.iterdir())
    except OSError as error:
        raise _bad_file(path.parent, "unreadable", os_cause(error)) from None
    for name in names:
        other = _shard(name)
        if other and (other.prefix, other.total) == (shard.prefix, shard.total):
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
        "Put the model file there, or correct the model's source.",
        "error",
        {"path": str(path)},
    )
    return Refused(Failure(reason))


def _incomplete(path: Path, shard: _Shard, missing: list[int]) -> Refused:
    names = [f"{shard.prefix}-{index:05d}-of-{shard.total}.gguf" for index in missing]
    more = f" and {len(names) - SHOWN_MISSING} more" if len(names) > SHOWN_MISSING else ""
    reason = Reason(
        "incomplete_set",
        f"{len(names)} of {int(shard.total)} files of the model are missing in {path.parent}: "
        f"{', '.join(names[:SHOWN_MISSING])}{more}.",
        "Put all files of the set into one directory.",
        "error",
        {"path": str(path), "missing": names[:SHOWN_MISSING], "missing_count": len(names)},
    )
    return Refused(Failure(reason))


def _bad_file(path: Path, status: HeaderStatus, detail: str) -> Refused:
    word = WORDS.get(status)
    message = f"{path} {word} ({detail})." if status == "not_gguf" else f"{path} {word}: {detail}."
    if word is None:
        message = f"{path} {detail}."
    evidence = {"path": str(path), "status": status, "detail": detail}
    return Refused(Failure(Reason("bad_model_file", message, REMEDIES[status], "error", evidence)))
