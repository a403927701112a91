"""Which web pages of other origins may call the endpoint (`[server] cors`, case AS-04). Pure.

Called by `routes`. Only the public routes answer to other origins; `/api/v1` and the dashboard never do.
Cookies count for nothing there, so no answer allows credentials: a page sends its key in a header, as
programs do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

EVERY_ORIGIN = "*"
METHODS = "GET, POST"
# A browser asks again after this; ten minutes are what most of them keep at most.
MAX_AGE_S = 600
EXPOSED = "x-request-id, retry-after"
# Names of headers that a page asks to send. Client libraries add many of their own.
HEADER_LIST = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}(?: ?, ?[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}){0,63}")


def is_allowed(origin: str | None, allowed: tuple[str, ...]) -> bool:
    """Whether the manifest lets pages of this origin call."""
    return origin is not None and (EVERY_ORIGIN in allowed or origin.lower() in allowed)


def answer_headers(headers: Mapping[str, str], allowed: tuple[str, ...]) -> dict[str, str]:
    """Headers of every answer while there is a list: what a page may read, and that answers differ by
    page."""
    origin = headers.get("origin")
    if origin is None or not is_allowed(origin, allowed):
        return {"vary": "origin"}
    return {
        "vary": "origin",
        "access-control-allow-origin": origin,
        "access-control-expose-headers": EXPOSED,
    }


def preflight_headers(headers: Mapping[str, str], allowed: tuple[str, ...]) -> dict[str, str] | None:
    """What a browser wants to know before a page calls; None when it does not ask, or the page may not."""
    if "access-control-request-method" not in headers or not is_allowed(headers.get("origin"), allowed):
        return None
    found = {"access-control-allow-methods": METHODS, "access-control-max-age": str(MAX_AGE_S)}
    wanted = headers.get("access-control-request-headers", "")
    if HEADER_LIST.fullmatch(wanted):
        found["access-control-allow-headers"] = wanted
    return found
