"""Headers that let web pages of other origins call the server (12 §2.3, 15 §5). Pure; called by gate."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from framework.nativeserver.options import CorsOptions

ANY = "*"
LOCAL = "localhost"


def cors_headers(options: CorsOptions, origin: str) -> dict[str, str]:
    """Headers of every answer to a request from `origin`, which is empty where the request named none."""
    headers = {"access-control-allow-origin": _allowed(options, origin)}
    if headers["access-control-allow-origin"] != ANY:
        # What is stored for one origin is not to be shown to another.
        headers["vary"] = "Origin"
    if options.credentials:
        headers["access-control-allow-credentials"] = "true"
    return headers


def preflight_headers(options: CorsOptions) -> dict[str, str]:
    """What an answer to `OPTIONS` has besides."""
    return {
        "access-control-allow-methods": options.methods,
        "access-control-allow-headers": options.headers,
    }


def _allowed(options: CorsOptions, origin: str) -> str:
    if options.origins == ANY:
        # With credentials a browser takes no `*`: the origin itself is named.
        return origin if options.credentials else ANY
    if options.origins == LOCAL:
        return origin if _is_local(origin) else ""
    return origin if origin in [allowed.strip() for allowed in options.origins.split(",")] else ""


def _is_local(origin: str) -> bool:
    try:
        host = urlsplit(origin).hostname or ""
        return host == LOCAL or host.endswith(f".{LOCAL}") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
