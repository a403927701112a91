"""Header facts remembered by path, size and modification time: in memory, and on disk for the next process.

Called by facts. Only whole files are remembered; one that is at fault may be mended within the same second.
What lies on disk is this user's own and is still only believed as far as its types go.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import OrderedDict
from dataclasses import fields
from itertools import repeat
from pathlib import Path
from typing import Any

import orjson
import platformdirs

from framework.models.gguf_fields import GgufHeader, OriginHints
from framework.models.gguf_tensors import TensorInfo, TensorResult, read_tensors
from framework.values.engine import FileId

log = logging.getLogger(__name__)

# Changes with every change of what is remembered.
FORMAT = "1:" + ",".join(field.name for field in fields(GgufHeader))
# About what a tensor and a header take in memory.
TENSOR_COST_BYTES, HEADER_COST_BYTES = 500, 4096
MEMORY_LIMIT_BYTES = 256 * 2**20
DISK_FILES = 512
DISK_FILE_LIMIT_BYTES = 32 * 2**20
NAME_DIGITS = 32
PRIVATE_DIR = 0o700
SUFFIX = ".json"


class HeaderCache:
    """Headers and tensor directories of model files. Safe to use from several threads.

    Without a directory it only remembers until the process ends.
    """

    def __init__(
        self, directory: Path | None = None, *, memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    ) -> None:
        self._directory = directory
        self._limit_bytes = memory_limit_bytes
        self._known: OrderedDict[FileId, TensorResult] = OrderedDict()
        self._used_bytes = 0
        self._lock = threading.Lock()

    def read(self, file: FileId) -> TensorResult:
        """What `read_tensors` says of the file; only read again when it changed. Never raises."""
        with self._lock:
            if file in self._known:
                self._known.move_to_end(file)
                return self._known[file]
        found = self._load(file)
        if found is None:
            found = read_tensors(file.path)
            if found.status != "ok":
                return found
            self._save(file, found)
        self._remember(file, found)
        return found

    def _remember(self, file: FileId, found: TensorResult) -> None:
        with self._lock:
            if file in self._known:
                return
            self._known[file] = found
            self._used_bytes += _cost_bytes(found)
            while self._used_bytes > self._limit_bytes:
                _, oldest = self._known.popitem(last=False)
                self._used_bytes -= _cost_bytes(oldest)

    def _load(self, file: FileId) -> TensorResult | None:
        path = self._place(file)
        if path is None:
            return None
        try:
            if path.stat().st_size > DISK_FILE_LIMIT_BYTES:
                return None
            return decode(path.read_bytes(), file)
        except OSError:
            return None

    def _save(self, file: FileId, found: TensorResult) -> None:
        path = self._place(file)
        if path is None:
            return
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
            temporary.write_bytes(encode(file, found))
            temporary.replace(path)
            _prune(path.parent)
        except (OSError, TypeError) as error:  # also numbers that JSON cannot hold
            log.debug("facts of %s are not kept: %s", file.path, error)

    def _place(self, file: FileId) -> Path | None:
        if self._directory is None:
            return None
        name = hashlib.sha256(os.fsencode(file.path.absolute())).hexdigest()[:NAME_DIGITS]
        return self._directory / (name + SUFFIX)


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
            "file": [str(file.path.absolute()), file.size, file.mtime_ns],
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
        identity = [str(file.path.absolute()), file.size, file.mtime_ns]
        if document["format"] != FORMAT or document["file"] != identity:
            return None
        header = {name: _frozen(value) for name, value in document["header"].items()}
        return TensorResult(
            "ok",
            tensors=_tensors(*document["tensors"]),
            header=GgufHeader(**header, origin=OriginHints(**document["origin"])),
            data_start=document["data_start"],
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _tensors(*columns: list[Any]) -> tuple[TensorInfo, ...]:
    """Columns as `encode` wrote them; none at all for a file without tensors."""
    if not columns:
        return ()
    names, dims, types, offsets, sizes = columns
    rows = zip(names, map(tuple, dims), types, offsets, sizes, strict=True)
    return tuple(map(tuple.__new__, repeat(TensorInfo), rows))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _cost_bytes(found: TensorResult) -> int:
    template = found.header.chat_template or ""
    return HEADER_COST_BYTES + len(template) + TENSOR_COST_BYTES * len(found.tensors)


def _prune(directory: Path) -> None:
    """Keep the newest facts only."""
    with os.scandir(directory) as entries:
        found = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    if len(found) <= DISK_FILES:
        return
    for entry in sorted(found, key=lambda entry: entry.stat().st_mtime_ns)[: len(found) - DISK_FILES]:
        Path(entry.path).unlink(missing_ok=True)
