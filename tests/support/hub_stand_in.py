"""A small hub on the loopback: listings, resolve redirects to a second origin, ranges, and faults on demand.

What it says and how was taken from the client's source: status codes with `X-Error-Code`, `X-Repo-Commit`,
`X-Linked-*` headers on the redirect. Set `HF_ENDPOINT` to `url`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
CONTENT = re.compile(r"/content/(?P<sha>[0-9a-f]{64})")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
PIECE = 16 * 1024
REDIRECTS = (302,)


@dataclass
class Repo:
    """A repository at one commit. Change `commit` and `files` together to push."""

    files: dict[str, bytes]
    commit: str = "a" * 40
    gated: bool = False
    private: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    """What the listing says of files instead of the truth."""
    holes: dict[str, int] = field(default_factory=dict)
    """Zeros that follow what `files` says of a file, for models of any size. Only ranges of it can be had."""

    def size(self, path: str) -> int:
        """Bytes of a file."""
        return len(self.files[path]) + self.holes.get(path, 0)


@dataclass
class Faults:
    """What goes wrong; all of it can be changed while the stand-in runs."""

    api_status: int = 0
    """Status of every listing, with `retry_after`."""
    resolve_status: int = 0
    content_status: int = 0
    content_first: int = 0
    """So many answers with content before `content_status` begins."""
    retry_after: str = ""
    break_after: list[int] = field(default_factory=list)
    """The next answers with content end after so many bytes each."""
    bytes_per_s: float = 0.0
    ignore_range: bool = False
    flip_a_byte: bool = False
    announce_less: int = 0
    """Content shorter by so many bytes than the listing says, with a matching Content-Length."""
    api_body: bytes = b""
    """Every listing is this page instead, as a captive portal would send it."""
    api_encoding: str = ""
    """How `api_body` is said to be packed."""
    api_endless: int = 0
    """Every listing has this status and never ends."""
    api_drip_s: float = 0.0
    """Every listing comes byte by byte, with such pauses, and never ends."""
    api_redirect: str = ""
    """Every listing is said to be there."""
    endless: bool = False
    """Content never ends, and no length is announced."""
    etag: str = ""
    """What the content of every file is called."""
    commits: list[str] = field(default_factory=list)
    """The next pushes: each answered question for the content of a file moves on to the next one."""


@dataclass(frozen=True)
class Seen:
    """A request that came in. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]


class HubStandIn:
    """A hub and its content network, two servers on two ports. Use it in a `with` block."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.token = "hf_stand_in_secret"
        self._servers = [_Server(("127.0.0.1", 0), _handler(self)) for _ in range(2)]
        self._threads = [
            threading.Thread(target=server.serve_forever, args=(0.02,)) for server in self._servers
        ]
        self.closing = False

    def __enter__(self) -> HubStandIn:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing = True
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()

    @property
    def url(self) -> str:
        """For `HF_ENDPOINT`."""
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def content_url(self) -> str:
        """The other origin, where content lies."""
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    def add(self, repo: str, files: dict[str, bytes], **fields: Any) -> Repo:
        """Publish a repository."""
        self.repos[repo] = Repo(dict(files), **fields)
        return self.repos[repo]

    def content(self, sha: str) -> bytes | None:
        """A file by its checksum."""
        every = (data for repo in self.repos.values() for data in repo.files.values())
        return next((data for data in every if sha256(data) == sha), None)

    def hole(self, sha: str) -> int:
        """Zeros behind the file of this checksum."""
        every = ((repo, path) for repo in self.repos.values() for path in repo.holes)
        return next((repo.holes[path] for repo, path in every if sha256(repo.files[path]) == sha), 0)

    def served(self, kind: str, method: str = "GET") -> list[Seen]:
        """Requests so far whose path starts with `/api`, `/content`, or holds `/resolve/`."""
        return [seen for seen in tuple(self.seen) if kind in seen.path and seen.method == method]


def sha256(data: bytes) -> str:
    """The checksum that names content."""
    return hashlib.sha256(data).hexdigest()


class _Server(ThreadingHTTPServer):
    """Clients that hang up are part of the tests."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """As the base class, but for a lost connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(hub: HubStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(_Answers):
        stand_in = hub

    return Handler


class _Answers(BaseHTTPRequestHandler):
    """One connection."""

    stand_in: HubStandIn
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  name of the base class
        """Nothing."""

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.stand_in.seen.append(Seen(self.command, path, headers))
        try:
            if match := CONTENT.fullmatch(path):
                self._content(match["sha"])
            elif match := API.fullmatch(path):
                self._listing(match["repo"], match["revision"])
            elif match := RESOLVE.fullmatch(path):
                self._resolve(match["repo"], match["revision"], match["file"])
            else:
                self._send(404)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _listing(self, name: str, revision: str | None) -> None:
        if status := self.stand_in.faults.api_status:
            self._fault(status)
            return
        if body := self.stand_in.faults.api_body:
            packed = {"Content-Encoding": encoding} if (encoding := self.stand_in.faults.api_encoding) else {}
            self._send(200, body, {"Content-Type": "text/html", **packed})
            return
        if self._flows_for_ever() or self._leads_away():
            return
        repo = self._readable(name)
        if repo is None:
            return
        siblings = [
            _sibling(path, data, repo.sizes.get(path, repo.size(path))) for path, data in repo.files.items()
        ]
        answer = {"id": name, "sha": repo.commit, "private": repo.private, "siblings": siblings}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _flows_for_ever(self) -> bool:
        faults = self.stand_in.faults
        if status := faults.api_endless:
            where = {"Location": f"{self.stand_in.url}{self.path}x"} if status in REDIRECTS else {}
            self._pour(b"x" * PIECE, status=status, headers=where)
        elif pause_s := faults.api_drip_s:
            self._pour(b" ", pause_s=pause_s)
        return bool(faults.api_endless or faults.api_drip_s)

    def _leads_away(self) -> bool:
        if place := self.stand_in.faults.api_redirect:
            self._send(302, headers={"Location": place})
        return bool(place)

    def _resolve(self, name: str, revision: str, file: str) -> None:
        if status := self.stand_in.faults.resolve_status:
            self._fault(status)
            return
        repo = self._readable(name)
        if repo is None:
            return
        if repo.gated and not self._authorized:
            self._send(403, headers={"X-Error-Code": "GatedRepo", "X-Error-Message": "restricted"})
            return
        if revision not in ("main", repo.commit):
            self._send(404, headers={"X-Error-Code": "RevisionNotFound"})
            return
        data = repo.files.get(file)
        if data is None:
            self._send(404, headers={"X-Error-Code": "EntryNotFound", "X-Repo-Commit": repo.commit})
            return
        headers = {
            "Location": f"{self.stand_in.content_url}/content/{sha256(data)}?signature=x",
            "X-Repo-Commit": repo.commit,
            "X-Linked-Etag": f'"{self.stand_in.faults.etag or sha256(data)}"',
            "X-Linked-Size": str(repo.size(file)),
            "ETag": '"pointer"',
        }
        self._send(302, headers=headers)
        if self.command == "GET" and self.stand_in.faults.commits:
            repo.commit = self.stand_in.faults.commits.pop(0)

    def _content(self, sha: str) -> None:
        faults = self.stand_in.faults
        if faults.content_first:
            faults.content_first -= 1
        elif faults.content_status:
            self._fault(faults.content_status)
            return
        data = self.stand_in.content(sha)
        if data is None:
            self._send(404)
            return
        if faults.flip_a_byte:
            data = bytes([data[0] ^ 1]) + data[1:]
        data = data[: len(data) - faults.announce_less]
        match = RANGE.fullmatch(self.headers.get("Range", ""))
        if match is None or faults.ignore_range:
            self._stream(200, data, {})
            return
        total = len(data) + self.stand_in.hole(sha)
        start, end = int(match[1]), min(int(match[2] or total), total - 1)
        if start >= total:
            self._send(416, headers={"Content-Range": f"bytes */{total}"})
            return
        part = data[start : end + 1].ljust(end + 1 - start, b"\0")
        self._stream(206, part, {"Content-Range": f"bytes {start}-{end}/{total}"})

    def _stream(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        faults = self.stand_in.faults
        if faults.endless:
            self._pour(data)
            return
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data)), "Accept-Ranges": "bytes"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        limit = faults.break_after.pop(0) if faults.break_after else None
        for position in range(0, len(data), PIECE):
            piece = data[position : position + PIECE]
            if limit is not None and position + len(piece) > limit:
                self.wfile.write(piece[: limit - position])
                self.close_connection = True
                return
            self.wfile.write(piece)
            if faults.bytes_per_s:
                time.sleep(len(piece) / faults.bytes_per_s)
            if self.stand_in.closing:
                self.close_connection = True
                return

    def _pour(
        self, data: bytes, *, status: int = 200, headers: dict[str, str] | None = None, pause_s: float = 0.0
    ) -> None:
        """The same bytes again and again, until the client has had enough."""
        self.send_response(status)
        for name, value in {**(headers or {}), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        while self.command != "HEAD" and not self.stand_in.closing:
            self.wfile.write(data)
            time.sleep(pause_s)

    def _readable(self, name: str) -> Repo | None:
        """The repository, or None when the answer has been given."""
        repo = self.stand_in.repos.get(name)
        if repo is not None and (not repo.private or self._authorized):
            return repo
        # The hub tells strangers the same about private and about missing ones.
        self._send(401 if not self._authorized else 404, headers={"X-Error-Code": "RepoNotFound"})
        return None

    @property
    def _authorized(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.stand_in.token}"

    def _fault(self, status: int) -> None:
        retry_after = self.stand_in.faults.retry_after
        self._send(status, headers={"Retry-After": retry_after} if retry_after else {})

    def _send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _sibling(path: str, data: bytes, size: int) -> dict[str, Any]:
    lfs = {"sha256": sha256(data), "size": size, "pointerSize": 134}
    return {"rfilename": path, "size": size, "blobId": "0" * 40, "lfs": lfs}
