"""Pages are sent compressed: a list of 300 models is small on the wire. Streams stay as they are.

What another site asks for in a reader's name is not compressed: its length would tell whether a guess at the
page's token was right, as words of the address are on the page as well (BREACH).
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

# Twice as fast as the smallest result, and a few per cent larger.
LEVEL = 5
# A packet is sent anyway.
LEAST_BYTES = 1400
FOREIGN_SITES = ("cross-site", "same-site")


class CompressedPages:
    """ASGI middleware around one route of pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, LEAST_BYTES, LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; compress the answer where the reader takes that and is alone."""
        is_foreign = Headers(scope=scope).get("sec-fetch-site") in FOREIGN_SITES
        await (self._plain if is_foreign else self._compressed)(scope, receive, send)
