"""Static files under `/static`: addressed by content, so that a browser may keep them for ever.

The vendored scripts are fetched by make and may be missing; pages then work without them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

HASH_LENGTH = 12
# A year, the longest that caches honour. The address changes with the content.
KEEP = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SCRIPTS = ("vendor/htmx-2.*.min.js", "vendor/htmx-ext-sse-2.*.min.js", "app.js")
"""In loading order; patterns, since the file names carry the version."""


class Assets:
    """The files of `static_dir` as they are when the server starts, by their path below it."""

    def __init__(self, static_dir: Path) -> None:
        self._files: dict[str, tuple[Path, str]] = {}
        for path in sorted(static_dir.rglob("*")):
            if path.suffix in MEDIA_TYPES and path.is_file():
                digest = hashlib.sha256(path.read_bytes()).hexdigest()[:HASH_LENGTH]
                self._files[path.relative_to(static_dir).as_posix()] = (path, digest)
        found = [self._newest(pattern) for pattern in SCRIPTS]
        self.scripts: tuple[str, ...] = tuple(self.url(name) for name in found if name is not None)
        """Addresses of the scripts to load; empty unless all are there, as they need each other."""
        if None in found:
            self.scripts = ()

    def url(self, name: str) -> str:
        """The address of a file, with the hash of its content. KeyError for a file that is not there."""
        return f"/static/{name}?h={self._files[name][1]}"

    async def answer(self, request: Request) -> Response:
        """Serve one file of the table; nothing outside of it can be named."""
        entry = self._files.get(request.path_params["name"])
        if entry is None:
            return PlainTextResponse("No such file.\n", 404)
        path, digest = entry
        headers = {"cache-control": KEEP if request.query_params.get("h") == digest else ASK_AGAIN}
        return FileResponse(path, headers=headers, media_type=MEDIA_TYPES[path.suffix])

    @property
    def digests(self) -> Mapping[str, str]:
        """Hash of each file, by its path below the static directory."""
        return {name: digest for name, (_, digest) in self._files.items()}

    def _newest(self, pattern: str) -> str | None:
        names = [name for name in self._files if Path(name).match(pattern)]
        return names[-1] if names else None
