"""Origins of web pages, as `server.cors` writes them: `https://chat.example`, or `*` for all of them."""

from __future__ import annotations

import re
from typing import Any

from framework.manifest.bad_value import BadValue

EVERY_ORIGIN = "*"
ORIGIN_FORM = 'the origin of a page, as in "https://chat.example" or "http://localhost:3000", or "*"'
# What a browser sends: scheme, host in ASCII, and a port unless it is the usual one. No path, no slash.
ORIGIN = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?"
)
USUAL_PORTS = {"http": ":80", "https": ":443"}


def parse_origin(value: Any) -> str:
    """An origin as browsers send it, in lower case and without the usual port of its scheme."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if text == EVERY_ORIGIN:
        return text
    bare = text.rstrip("/")
    if not ORIGIN.fullmatch(text):
        suggestion = f'"{bare}"' if ORIGIN.fullmatch(bare) else ""
        raise BadValue("bad_origin", ORIGIN_FORM, suggestion=suggestion)
    return text.removesuffix(USUAL_PORTS[text.partition(":")[0]])
