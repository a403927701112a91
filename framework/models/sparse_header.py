"""Files that are not here: read from their first bytes, and stood in for by a file of holes.

An engine reads only the header to plan memory, so a local file with the real header and nothing behind it
lets the very engine that will serve a model say what it would take, before any gigabyte moves. Called by the
hub client with what range requests brought, and by whoever measures. Such a file can never serve: it lies
apart from models, in this user's cache.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from framework.models.file_names import base_name, is_gguf
from framework.models.gguf_stream import READ_BUDGET_BYTES
from framework.models.gguf_tensors import TensorResult, parse_tensors

# Holds the whole header of most models: 5 to 8 MiB with 128k to 262k tokens and their merges.
FIRST_PART_BYTES = 8 * 2**20
# More than the estimate, as what follows the vocabulary is not in it.
MARGIN_BYTES = 2**20
KEPT_REPOSITORIES = 64
KEY_DIGITS = 24
PRIVATE_DIR = 0o700
BLOCK_BYTES = 512


@dataclass(frozen=True)
class HeaderPart:
    """What the first bytes of a file say. `result` is that of a whole file once they are enough."""

    result: TensorResult
    next_bytes: int | None = None
    """How many of the first bytes to have before asking again; None when more of them would not help."""

    @property
    def complete(self) -> bool:
        """Whether header and tensor directory are all there."""
        return self.result.status == "ok"


class NotSparse(Exception):
    """No stand-in can be made; the text says why."""


def read_part(data: bytes, total_bytes: int) -> HeaderPart:
    """Read header and tensor directory of a file of `total_bytes` from its beginning. Never raises."""
    total_bytes = max(total_bytes, len(data))
    result = parse_tensors(io.BytesIO(data), len(data), total_bytes=total_bytes)
    needed = result.needed_bytes
    if result.status != "truncated" or result.tensors or not len(data) < needed <= total_bytes:
        return HeaderPart(result)
    if len(data) >= READ_BUDGET_BYTES:
        return HeaderPart(TensorResult("corrupt", f"more than {READ_BUDGET_BYTES} bytes of header"))
    wanted = max(needed + MARGIN_BYTES, len(data) * 3 // 2)
    return HeaderPart(result, min(wanted, total_bytes, READ_BUDGET_BYTES))


class SparseHeaders:
    """Stand-ins by repository, revision and name, below one directory; the oldest repositories are dropped.

    Files of one set lie in one directory under their own names, as engines find later shards by name.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, repo: str, revision: str, file: str) -> Path:
        """Where the stand-in of a repository's file lies, or would."""
        folder = file.rpartition("/")[0]
        key = "\n".join((repo, revision, folder)).encode("utf-8", "surrogateescape")
        name = base_name(file)
        if not is_gguf(name) or "\0" in name:
            raise NotSparse(f"{file!r} is not the name of a GGUF file")
        return self._root / hashlib.sha256(key).hexdigest()[:KEY_DIGITS] / name

    def find(self, repo: str, revision: str, file: str, total_bytes: int) -> Path | None:
        """The stand-in, where there is one of this size."""
        path = self.path(repo, revision, file)
        try:
            return path if path.stat().st_size == total_bytes else None
        except OSError:
            return None

    def write(self, repo: str, revision: str, file: str, head: bytes, total_bytes: int) -> Path:
        """Make the stand-in from bytes that `read_part` finds complete. Raises NotSparse or OSError."""
        path = self.path(repo, revision, file)
        path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        write_sparse(path, head, total_bytes)
        os.utime(path.parent)
        self._drop_oldest()
        return path

    def _drop_oldest(self) -> None:
        with os.scandir(self._root) as entries:
            found = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.is_dir()]
        for _, path in sorted(found)[:-KEPT_REPOSITORIES]:
            shutil.rmtree(path, ignore_errors=True)


def headers_directory() -> Path:
    """Where this user's stand-ins lie."""
    return platformdirs.user_cache_path("paddock", appauthor=False) / "sparse"


def write_sparse(path: Path, head: bytes, total_bytes: int) -> None:
    """Write header and tensor directory, and a hole up to the full size; all of it or nothing.

    Raises `NotSparse` where `head` is not complete, or where the disk would fill the hole, and OSError.
    """
    part = read_part(head, total_bytes)
    if not part.complete:
        raise NotSparse(f"the header is not complete: {part.result.status}, {part.result.detail}")
    own = head[: part.result.data_start]
    temporary = path.with_name(f".{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(own)
            file.truncate(total_bytes)
            file.flush()
            taken = os.fstat(file.fileno()).st_blocks * BLOCK_BYTES
        if taken > len(own) + MARGIN_BYTES:
            raise NotSparse(f"files with holes take their full size on the disk of {path.parent}")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
