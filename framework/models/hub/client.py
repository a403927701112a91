"""The hub's own client: listings, metadata, first bytes; and its errors in our words (02 §10, §14).

With hub.transfer the only place that imports huggingface_hub, and only inside the download process: the
import takes a second, and the client keeps settings of its environment in globals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from huggingface_hub import (
    HfApi,
    get_hf_file_metadata,
    get_token,
    hf_hub_url,
    set_client_factory,
)
from huggingface_hub.errors import (
    DisabledRepoError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from framework import __version__
from framework.models.hub import refusals
from framework.models.hub.facts import RepoFile, RepoListing
from framework.models.hub.http import (
    ANSWER_LIMIT_BYTES,
    REQUEST_TIMEOUT_S,
    TOO_MANY,
    HubHttp,
    TooLarge,
    TooSlow,
    within,
)
from framework.models.hub.places import is_safe_path
from framework.values.reason import Refused

LIBRARY: dict[str, Any] = {"library_name": "paddock", "library_version": __version__}
# For a whole answer; content of files has no such limit, but the first bytes of one have.
ANSWER_LIMIT_S, FIRST_BYTES_LIMIT_S = 60.0, 600.0
# The largest repositories of models have some thousand.
MOST_FILES = 50_000
LONGEST_WAIT_S = 1e6
READ_SIZE = 256 * 1024
LARGEST_SIZE = 2**60
SHA256 = re.compile(r"[0-9a-f]{64}")
SHA1 = re.compile(r"[0-9a-f]{40}")
ETAG = re.compile(r"[A-Za-z0-9._-]{1,128}")
CONTENT_RANGE_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)")
UNAUTHORIZED, FORBIDDEN, PARTIAL = 401, 403, 206
LONGEST_CAUSE = 200
QUERY = re.compile(r"\?\S+")


@dataclass(frozen=True)
class Metadata:
    """What the hub says of one file at one commit. `etag` names its content: the SHA-256 for large files."""

    etag: str
    size_bytes: int
    commit: str


class HubClient:
    """Calls of the hub for one repository. All calls block; all raise Refused."""

    def __init__(self, repo: str, endpoint: str) -> None:
        self.repo = repo
        self.endpoint = endpoint
        set_client_factory(HubHttp)

    def listing(self) -> RepoListing:
        """Names, sizes and checksums of all files of the main branch."""
        with self.translated(), within(ANSWER_LIMIT_S):
            try:
                info = HfApi(endpoint=self.endpoint, **LIBRARY).model_info(
                    self.repo, files_metadata=True, timeout=REQUEST_TIMEOUT_S
                )
                if len(info.siblings or ()) > MOST_FILES:
                    raise refusals.listing_too_large(self.repo, f"{MOST_FILES:,} files")
                files = tuple(_file(one) for one in info.siblings or () if is_safe_path(one.rfilename))
            except json.JSONDecodeError as error:
                raise refusals.no_hub(self.repo, self.endpoint, "no JSON") from error
            except (TypeError, KeyError, AttributeError, RecursionError) as error:
                raise refusals.no_hub(self.repo, self.endpoint, "no listing") from error
        if not info.sha:
            raise refusals.no_such_revision(self.repo)
        if not SHA1.fullmatch(info.sha):
            raise refusals.no_hub(self.repo, self.endpoint, "no commit")
        return RepoListing(self.repo, info.sha, files)

    def url(self, file: str, revision: str) -> str:
        """Where the content of a file is asked for; the hub redirects to where it lies."""
        return hf_hub_url(self.repo, file, revision=revision, endpoint=self.endpoint)

    def headers(self) -> dict[str, str]:
        """Headers of a request, with the token of this machine where it has one."""
        return build_hf_headers(**LIBRARY)

    def metadata(self, file: str, revision: str) -> Metadata:
        """Size and identity of a file; asks for the right to read it, which a listing does not."""
        with self.translated(file), within(ANSWER_LIMIT_S):
            found = get_hf_file_metadata(
                self.url(file, revision),
                timeout=REQUEST_TIMEOUT_S,
                endpoint=self.endpoint,
                **LIBRARY,
            )
        if not found.etag or not ETAG.fullmatch(found.etag) or not found.commit_hash or found.size is None:
            raise refusals.no_hub(self.repo, self.endpoint, "no ETag, commit or size")
        return Metadata(found.etag, found.size, found.commit_hash)

    def first_bytes(self, file: str, revision: str, count: int) -> tuple[bytes, int]:
        """At most `count` bytes from the start of a file, and the size of the whole file."""
        headers = {**self.headers(), "Range": f"bytes=0-{count - 1}", "Accept-Encoding": "identity"}
        data = bytearray()
        url = self.url(file, revision)
        with (
            self.translated(file),
            within(FIRST_BYTES_LIMIT_S),
            get_session().stream("GET", url, headers=headers, timeout=REQUEST_TIMEOUT_S) as response,
        ):
            hf_raise_for_status(response)
            total = _total_bytes(response)
            for chunk in response.iter_bytes(READ_SIZE):
                data += chunk
                if len(data) >= count:
                    break
        return bytes(data[:count]), max(total, len(data))

    @contextmanager
    def translated(self, file: str = "") -> Iterator[None]:
        """Faults of the client, raised inside, as Refused."""
        try:
            yield
        except Refused:
            raise
        except Exception as error:
            refusal = self._refusal(error, file)
            if refusal is None:
                raise
            raise refusal from error

    def _refusal(self, error: BaseException, file: str) -> Refused | None:
        if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
            return self._refusal(error.__cause__, file)
        if isinstance(error, TooLarge):
            return refusals.listing_too_large(self.repo, f"{ANSWER_LIMIT_BYTES >> 20} MiB")
        if isinstance(error, TooSlow):
            return refusals.unreachable(self.repo, self.endpoint, "it did not answer in full in time")
        if isinstance(error, HfHubHTTPError):
            return self._http_refusal(error, file)
        if isinstance(error, HFValidationError):
            return refusals.no_such_repo(self.repo, 400)
        if isinstance(error, httpx2.TransportError | OfflineModeIsEnabled):
            return refusals.unreachable(self.repo, self.endpoint, one_line(error))
        if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL | FileMetadataError | ValueError):
            return refusals.hub_error(self.repo, one_line(error))
        return None

    def _http_refusal(self, error: HfHubHTTPError, file: str) -> Refused:
        status = error.response.status_code
        if isinstance(error, GatedRepoError):
            return refusals.gated(self.repo)
        if isinstance(error, RemoteEntryNotFoundError):
            return refusals.no_such_file(self.repo, file, ())
        if isinstance(error, RevisionNotFoundError):
            return refusals.changed(self.repo, file) if file else refusals.no_such_revision(self.repo)
        if isinstance(error, DisabledRepoError):
            return refusals.disabled(self.repo)
        if isinstance(error, RepositoryNotFoundError):
            return refusals.no_such_repo(self.repo, status)
        if status in (UNAUTHORIZED, FORBIDDEN):
            return refusals.not_allowed(self.repo, status, had_token=get_token() is not None)
        if status == TOO_MANY:
            return refusals.rate_limited(self.repo, asked_wait_s(error.response.headers))
        return refusals.hub_error(self.repo, f"HTTP {status}", status)


def _file(found: RepoSibling) -> RepoFile:
    """A file of a listing, which comes from outside: what is no size or checksum is none."""
    size, sha256 = (found.size, None) if found.lfs is None else (found.lfs.size, found.lfs.sha256)
    known = isinstance(size, int) and 0 <= size <= LARGEST_SIZE
    named = isinstance(sha256, str) and SHA256.fullmatch(sha256)
    return RepoFile(found.rfilename, size if known else None, sha256 if named else None)


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """The pause that an answer with 429 asks for, in seconds."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), LONGEST_WAIT_S)
    # The hub's own header: `"api";r=0;t=55`, t in seconds.
    match = re.search(r";\s*t=(\d{1,9})", headers.get("RateLimit", ""))
    return float(match.group(1)) if match else None


def one_line(error: BaseException) -> str:
    """A fault in a few words; addresses without their query, which may hold a signature."""
    text = QUERY.sub("", " ".join(str(error).split()))[:LONGEST_CAUSE].rstrip(".")
    return text or type(error).__name__


def _total_bytes(response: httpx2.Response) -> int:
    if response.status_code == PARTIAL:
        match = CONTENT_RANGE_TOTAL.fullmatch(response.headers.get("Content-Range", ""))
        return int(match.group(1)) if match else 0
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else 0
