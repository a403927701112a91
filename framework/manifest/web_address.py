"""Addresses of programs that are called over HTTP. Raises `BadValue`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from framework.manifest.bad_value import BadValue
from framework.manifest.texts import parse_text

WEB_FORM = (
    'an http or https address, as in "http://127.0.0.1:9000", without user, password, query or fragment'
)


def parse_web_address(value: Any) -> str:
    """A base address, without a slash at its end. What could hold a secret is refused, since it is shown."""
    text = parse_text(value, what="an address").strip()
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadValue("bad_address", WEB_FORM) from None
    if not is_whole or "@" in parts.netloc or parts.query or parts.fragment or " " in text:
        raise BadValue("bad_address", WEB_FORM, found="one with a user" if "@" in parts.netloc else "")
    return text.rstrip("/")
