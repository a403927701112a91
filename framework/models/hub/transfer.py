"""Fetch one file of a repository into the cache, going on where an earlier try ended (02 §10.5).

The hub's client fetches each file into a temporary file of its own that it drops when anything goes wrong, so
after a broken 40 GB download nothing is left. Here its transfer function writes to a file that stays:
`blobs/<etag>.paddock.incomplete`, of which its cache tools know that it is unfinished. The content is hashed
on its way. When it is whole it gets its final name, under the client's own lock for it; snapshot links and
refs are then made by the client. Called by hub.download, inside the download process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from filelock import Timeout
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import WeakFileLock

from framework.models.hub import refusals
from framework.models.hub.client import LIBRARY, HubClient, Metadata, one_line
from framework.models.hub.disk import free_bytes
from framework.models.hub.places import entries, file_below, repo_folder, size_of
from framework.models.hub.retries import pause
from framework.models.hub.wire import Patience
from framework.values.reason import Refused

PARTIAL_SUFFIX = ".paddock.incomplete"
SHA256 = re.compile(r"[0-9a-f]{64}")
HASH_CHUNK = 4 * 2**20
# The client's own 10 MiB are lost when the process ends, and make a bar jump on a slow line.
CHUNK = 2**18
RANGE_REFUSED = 416
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
MAIN = "main"

Report = Callable[[int], None]
"""Called with the bytes of the file that are here."""


def bar_class(report: Report) -> type[Any]:
    """A class for the client to make its progress bars of, which all pass their count on."""
    return type("ReportingBar", (Bar,), {"report": staticmethod(report)})


class Bar:
    """Stands in for the client's progress bar: nothing is drawn, the count of bytes is passed on."""

    report: Report

    def __init__(self, *, total: float | None = None, initial: int = 0, **_: Any) -> None:
        self.n = initial
        self.total = total
        self.report(self.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.report(self.n)

    def update(self, n: int | None = 1) -> None:
        """Count bytes; negative where the client starts over."""
        self.n += int(n or 0)
        self.report(self.n)

    def update_transfer(self, n: int = 0) -> None:
        """Bytes on the network, which are not those of the file."""

    def set_postfix_str(self, *_: object, **__: object) -> None:
        """Nothing is drawn."""

    def refresh(self) -> None:
        """Nothing is drawn."""

    def close(self) -> None:
        """Nothing is drawn."""


class TooLong(Exception):
    """More bytes came than the file has."""


class HashedFile:
    """A file that grows at its end, with the SHA-256 of what it holds; what the client's transfer needs.

    It never grows beyond `limit_bytes`, whatever a server sends.
    """

    def __init__(self, file: BinaryIO, limit_bytes: int) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._hash = hashlib.sha256()
        file.seek(0)
        while data := file.read(HASH_CHUNK):
            self._hash.update(data)

    def write(self, data: bytes) -> int:
        """Append. Raises TooLong."""
        if self._file.tell() + len(data) > self._limit_bytes:
            raise TooLong
        self._hash.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        """The size."""
        return self._file.tell()

    def seek(self, position: int) -> int:
        """To the start: the server did not go on where it was asked to."""
        return self._file.seek(position)

    def truncate(self) -> int:
        """Drop everything. REQUIRES: at the start."""
        if self._file.tell() != 0:
            raise ValueError("only the whole file can be dropped")
        self._hash = hashlib.sha256()
        return self._file.truncate()

    @property
    def sha256(self) -> str:
        """Of the whole content."""
        return self._hash.hexdigest()


class Transfer:
    """Fetches files of one repository at one commit."""

    def __init__(
        self,
        client: HubClient,
        cache: Path,
        revision: str,
        patience: Patience,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._cache = cache
        self._revision = revision
        self._patience = patience
        self._sleep = sleep
        self._folder = cache / repo_folder(client.repo)
        constants.DOWNLOAD_CHUNK_SIZE = CHUNK

    def here_bytes(self, etag: str | None, size_bytes: int) -> int:
        """What of a file is in the cache: all of it, or what earlier tries fetched."""
        if etag is None:
            return 0
        blobs = self._folder / "blobs"
        if size_of(blobs / etag) == size_bytes:
            return size_bytes
        return min(size_of(blobs / f"{etag}{PARTIAL_SUFFIX}") or 0, size_bytes)

    def blobs_bytes(self) -> int:
        """All that the cache holds of the repository, unfinished files too."""
        return sum(size_of(path) or 0 for path in entries(self._folder / "blobs"))

    def fetch(self, file: str, report: Report) -> Path:
        """The file in the snapshot of the commit, whole. Raises Refused when trying again is no use."""
        mark = _Mark(report)
        waits, best = list(self._patience.retry_waits_s), 0
        while True:
            try:
                with self._translated(file, mark):
                    path = self._try(file, mark)
            except Refused as refusal:
                if mark.best > best:
                    waits, best = list(self._patience.retry_waits_s), mark.best
                pause(refusal, waits, self._patience, self._sleep)
            else:
                if path is None:
                    raise refusals.wrong_content(self._client.repo, file)
                return path

    def _try(self, file: str, mark: _Mark) -> Path | None:
        """One try; None when what came is not what was promised."""
        found = self._client.metadata(file, self._revision)
        mark.total_bytes = found.size_bytes
        pointer = file_below(self._folder / "snapshots" / self._revision, file)
        if pointer is not None and size_of(pointer) == found.size_bytes:
            mark(found.size_bytes)
            return pointer
        if pointer is not None:
            # Cut off; the client would take it for what it is not.
            pointer.unlink()
        self._check_room(found)
        if found.size_bytes > constants.MAX_HTTP_DOWNLOAD_SIZE:
            return self._by_chunks(file, mark)
        lock = self._cache / ".locks" / self._folder.name / f"{found.etag}.lock"
        blob = self._folder / "blobs" / found.etag
        # The snapshot, too, as the client has it: its tools take a repository without one for a damaged one.
        for folder in (lock.parent, blob.parent, self._folder / "snapshots" / self._revision):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            with WeakFileLock(lock, timeout=self._patience.busy_s):
                if size_of(blob) != found.size_bytes and not self._fill(file, found, blob, mark):
                    return None
        except Timeout:
            raise refusals.busy(self._client.repo, "Another program", self._patience.busy_s) from None
        mark(found.size_bytes)
        return self._link(file)

    def _check_room(self, found: Metadata) -> None:
        """Again for each file: a listing may be wrong, and others fill the same disk."""
        missing = found.size_bytes - self.here_bytes(found.etag, found.size_bytes)
        free = free_bytes(self._cache)
        if free is not None and missing > free:
            raise refusals.disk_full(self._client.repo, str(self._cache), missing, free, None)

    def _fill(self, file: str, found: Metadata, blob: Path, report: Report) -> bool:
        """Complete the unfinished file and give it its name; False, and it is gone, when it is damaged."""
        unfinished = blob.with_name(blob.name + PARTIAL_SUFFIX)
        with unfinished.open("a+b") as raw:
            if raw.tell() > found.size_bytes:
                raw.truncate(0)
            hashed = HashedFile(raw, found.size_bytes)
            http_get(
                self._client.url(file, self._revision),
                cast(BinaryIO, hashed),
                resume_size=hashed.tell(),
                headers={**self._client.headers(), "Accept-Encoding": "identity"},
                expected_size=found.size_bytes,
                displayed_filename=file,
                tqdm_class=bar_class(report),
            )
            raw.flush()
            os.fsync(raw.fileno())
        if SHA256.fullmatch(found.etag) and hashed.sha256 != found.etag:
            unfinished.unlink()
            return False
        unfinished.replace(blob)
        return True

    def _link(self, file: str) -> Path:
        """Snapshot link and ref, made by the client, which finds the content in its place.

        By the branch when that still is our commit, so that the ref is written: without one the client's
        clean-up would take the snapshot for a leftover.
        """
        current = self._client.metadata(file, MAIN).commit
        revision = MAIN if current == self._revision else self._revision
        return Path(
            hf_hub_download(
                self._client.repo,
                file,
                revision=revision,
                cache_dir=self._cache,
                endpoint=self._client.endpoint,
                **LIBRARY,
            )
        )

    def _by_chunks(self, file: str, report: Report) -> Path:
        """Files that plain HTTP does not serve; an interrupted one starts over."""
        return Path(
            hf_hub_download(
                self._client.repo,
                file,
                revision=self._revision,
                cache_dir=self._cache,
                endpoint=self._client.endpoint,
                **LIBRARY,
                tqdm_class=bar_class(report),
            )
        )

    @contextmanager
    def _translated(self, file: str, mark: _Mark) -> Iterator[None]:
        """Faults of client and disk as Refused."""
        repo, cache = self._client.repo, str(self._cache)
        with self._client.translated(file):
            try:
                yield
            except TooLong as error:
                cause = "the server sends more than the file has"
                raise refusals.broken_off(repo, file, mark.now, mark.total_bytes, cause) from error
            except OSError as error:
                if isinstance(error, HfHubHTTPError) and error.response.status_code == RANGE_REFUSED:
                    cause = "the hub has less of it than it says"
                    raise refusals.broken_off(repo, file, mark.now, mark.total_bytes, cause) from error
                if error.errno in DISK_FULL:
                    missing = max(0, mark.total_bytes - mark.best)
                    free = free_bytes(self._cache) or 0
                    raise refusals.disk_full(repo, cache, missing, free, None) from error
                if type(error) is OSError:
                    # The transfer's word for a body of the wrong length.
                    cause = "the connection ended early"
                    raise refusals.broken_off(repo, file, mark.now, mark.total_bytes, cause) from error
                if error.errno is not None and not isinstance(error, HfHubHTTPError):
                    raise refusals.cache_unusable(cache, error.strerror or one_line(error)) from error
                raise


class _Mark:
    """Passes bytes on, and remembers how far a file has ever come: only news is worth more patience."""

    def __init__(self, report: Report) -> None:
        self.now = 0
        self.best = 0
        self.total_bytes = 0
        self._report = report

    def __call__(self, here_bytes: int) -> None:
        self.now = here_bytes
        self.best = max(self.best, here_bytes)
        self._report(here_bytes)
