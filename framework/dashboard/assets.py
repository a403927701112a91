"""Static files under `/static`: addressed by content, so that a browser may keep them for ever.

They are read, and compressed, once: what is sent under a hash is what was hashed. The vendored scripts are
fetched by make and may be missing; pages then work without them.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

HASH_LENGTH = 12
# A year, the longest that caches honour. The address changes with the content.
KEEP = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SCRIPTS = ("vendor/htmx-2.*.min.js", "vendor/htmx-ext-sse-2.*.min.js", "app.js")
"""In loading order; patterns, since the file names carry the version."""


@dataclass(frozen=True)
class Asset:
    """One file: its content, the same as gzip, and the start of its SHA-256."""

    content: bytes
    gzipped: bytes
    digest: str
    media_type: str


class Assets:
    """The files of `static_dir` as they are when the server starts, by their path below it."""

    def __init__(self, static_dir: Path) -> None:
        self._files: dict[str, Asset] = {}
        for path in sorted(static_dir.rglob("*")):
            if path.suffix in MEDIA_TYPES and path.is_file():
                self._files[path.relative_to(static_dir).as_posix()] = _read(path)
        found = [self._newest(pattern) for pattern in SCRIPTS]
        self.scripts: tuple[str, ...] = tuple(self.url(name) for name in found if name is not None)
        """Addresses of the scripts to load; empty unless all are there, as they need each other."""
        if None in found:
            self.scripts = ()

    def url(self, name: str) -> str:
        """The address of a file, with the hash of its content. KeyError for a file that is not there."""
        return f"/static/{name}?h={self._files[name].digest}"

    async def answer(self, request: Request) -> Response:
        """Serve one file of the table; nothing outside of it can be named."""
        asset = self._files.get(request.path_params["name"])
        if asset is None:
            return PlainTextResponse("No such file.\n", 404)
        tag = f'"{asset.digest}"'
        headers = {
            "cache-control": KEEP if request.query_params.get("h") == asset.digest else ASK_AGAIN,
            "etag": tag,
            "vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(asset.content, headers=headers, media_type=asset.media_type)
        headers["content-encoding"] = "gzip"
        return Response(asset.gzipped, headers=headers, media_type=asset.media_type)

    def _newest(self, pattern: str) -> str | None:
        names = [name for name in self._files if Path(name).match(pattern)]
        return names[-1] if names else None


def _read(path: Path) -> Asset:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    return Asset(content, gzip.compress(content, mtime=0), digest, MEDIA_TYPES[path.suffix])
