"""Header facts remembered by path, size and modification time: in memory, and on disk for the next process.

Called by facts. Only whole files are remembered; one that is at fault may be mended within the same second.
What lies on disk is only believed where it is plainly this user's own and every value has its type.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import fields
from itertools import chain, repeat
from pathlib import Path
from typing import Any, get_type_hints

import orjson
import platformdirs

from framework.models.gguf_fields import GgufHeader, OriginHints
from framework.models.gguf_tensors import TensorInfo, TensorResult, read_tensors
from framework.models.own_files import is_own_folder, prune, read_own, write_own
from framework.models.recent import Recent, cost_bytes
from framework.values.engine import FileId

log = logging.getLogger(__name__)

# Changes with every change of what is remembered.
FORMAT = "3:" + ",".join(field.name for field in fields(GgufHeader))
DISK_FILES = 512
DISK_FILE_LIMIT_BYTES = 16 * 2**20
DISK_LIMIT_BYTES = 64 * 2**20
LARGEST_NUMBER = 2**63 - 1
NAME_DIGITS = 32
PRIVATE_DIR = 0o700
SUFFIX = ".json"


class HeaderCache:
    """Headers and tensor directories of model files. Safe to use from several threads.

    Without a directory it only remembers until the process ends.
    """

    def __init__(self, directory: Path | None = None, *, recent: Recent | None = None) -> None:
        self._directory = directory
        self.recent = Recent() if recent is None else recent
        """What is in memory. Whoever derives more from headers keeps it there too."""

    def read(self, file: FileId, *, keep: bool = True) -> TensorResult:
        """What `read_tensors` says of the file; only read again when it changed. Never raises.

        Without `keep` nothing stays in memory: for looking through many files.
        """
        known: TensorResult | None = self.recent.get(file)
        if known is not None:
            return known
        found = self._load(file)
        if found is None:
            found = read_tensors(file.path)
            if found.status != "ok":
                return found
            self._save(file, found)
        if keep:
            self.recent.put(file, found, cost_bytes(found.header, found.tensors))
        return found

    def _load(self, file: FileId) -> TensorResult | None:
        if self._directory is None or not is_own_folder(self._directory):
            return None
        data = read_own(self._directory / _name(file), DISK_FILE_LIMIT_BYTES)
        return None if data is None else decode(data, file)

    def _save(self, file: FileId, found: TensorResult) -> None:
        if self._directory is None:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
            data = encode(file, found)
            if len(data) <= DISK_FILE_LIMIT_BYTES and is_own_folder(self._directory):
                write_own(self._directory / _name(file), data)
                prune(self._directory, most_files=DISK_FILES, most_bytes=DISK_LIMIT_BYTES)
        except (OSError, TypeError) as error:  # also numbers that JSON cannot hold
            log.debug("facts of %s are not kept: %s", file.path, error)


def _name(file: FileId) -> str:
    return hashlib.sha256(os.fsencode(file.path.absolute())).hexdigest()[:NAME_DIGITS] + SUFFIX


def cache_directory() -> Path:
    """Where this user's header facts lie."""
    return platformdirs.user_cache_path("paddock", appauthor=False) / "headers"


def encode(file: FileId, found: TensorResult) -> bytes:
    """Facts as they are written to disk."""
    header = {field.name: getattr(found.header, field.name) for field in fields(GgufHeader)}
    origin = header.pop("origin")
    return orjson.dumps(
        {
            "format": FORMAT,
            "file": _identity(file),
            "header": {name: value for name, value in header.items() if value is not None},
            "origin": {f.name: getattr(origin, f.name) for f in fields(OriginHints)},
            "data_start": found.data_start,
            "tensors": list(zip(*found.tensors, strict=True)),
        }
    )


def decode(data: bytes, file: FileId) -> TensorResult | None:
    """Facts of the file as it is now; None for those of another state or format, and for anything damaged."""
    try:
        document = orjson.loads(data)
        if document["format"] != FORMAT or document["file"] != _identity(file):
            return None
        header = {name: HEADER_FORMS[name](value) for name, value in document["header"].items()}
        origin = {name: ORIGIN_FORMS[name](value) for name, value in document["origin"].items()}
        return TensorResult(
            "ok",
            tensors=_tensors(*_list(document["tensors"])),
            header=GgufHeader(**header, origin=OriginHints(**origin)),
            data_start=_number(document["data_start"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _identity(file: FileId) -> list[str | int]:
    """The path as its bytes, each one a character: names are not always UTF-8."""
    return [os.fsencode(file.path.absolute()).decode("latin-1"), file.size, file.mtime_ns]


def _tensors(*columns: Any) -> tuple[TensorInfo, ...]:
    """Columns as `encode` wrote them; none at all for a file without tensors."""
    if not columns:
        return ()
    names, dims, types, offsets, sizes = map(_list, columns)
    if not set(map(type, names)) <= {str} or not set(map(type, dims)) <= {list}:
        raise ValueError("no names or no dimensions")
    for column in (types, offsets, list(chain.from_iterable(dims)), [s for s in sizes if s is not None]):
        _numbers(column)
    rows = zip(names, map(tuple, dims), types, offsets, sizes, strict=True)
    return tuple(map(tuple.__new__, repeat(TensorInfo), rows))


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError("no list")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("no text")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("no flag")
    return value


def _number(value: Any) -> int:
    _numbers([value])
    return int(value)


def _numbers(value: Any) -> tuple[int, ...]:
    numbers = _list(value)
    if not set(map(type, numbers)) <= {int}:
        raise ValueError("no numbers")
    if numbers and not 0 <= min(numbers) <= max(numbers) <= LARGEST_NUMBER:
        raise ValueError("no numbers of a header")
    return tuple(numbers)


def _flags(value: Any) -> tuple[bool, ...]:
    return tuple(map(_flag, _list(value)))


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


# How a value of each declared type is read. A field of a type that is missing here is an error at import.
FORMS: dict[Any, Callable[[Any], Any]] = {
    bool: _flag,
    bool | None: _flag,
    int | None: _number,
    str | None: _optional_text,
    tuple[int, ...] | None: _numbers,
    tuple[bool, ...] | None: _flags,
}
HEADER_FORMS = {name: FORMS[kind] for name, kind in get_type_hints(GgufHeader).items() if name != "origin"}
ORIGIN_FORMS = {name: FORMS[kind] for name, kind in get_type_hints(OriginHints).items()}
