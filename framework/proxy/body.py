"""Reading a request's body and making a JSON object of it (cases BI-03; 08 §8.8).

Called before anything else is looked at. Nothing malformed gets past this module: an engine would answer it
with a server error (15 §5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.types import Receive

from framework.proxy.body_budget import BodyShare
from framework.proxy.errors import ClientGone, ProxyError

MIB = 2**20
# The encoder that builds upstream bodies follows 254 levels; real schemas of tools stay below 30.
DEEPEST_NESTING = 254
# Slower than this a body only holds what it takes: 64 MiB over a line of 1 Mbit/s come at 15 times of it.
SLOWEST_BYTES_PER_S = 8 * 2**10
# Digits of a Content-Length that are read; far beyond any limit already.
LONGEST_LENGTH = 18
CHARSETS = ("utf-8", "utf8", "us-ascii")


async def read_object(
    receive: Receive, headers: Mapping[str, str], *, limit_bytes: int, silence_s: float, share: BodyShare
) -> dict[str, Any]:
    """The body as a JSON object; what it holds is counted in `share`.

    Raises ProxyError 400 (with the position), 413, 415 or 503, and ClientGone when the client leaves, sends
    nothing for `silence_s` seconds, or, after so long, less than 8 KiB in each second since.
    """
    _check_media_type(headers)
    return parse_object(
        await read_bytes(receive, headers, limit_bytes=limit_bytes, silence_s=silence_s, share=share)
    )


async def read_bytes(
    receive: Receive, headers: Mapping[str, str], *, limit_bytes: int, silence_s: float, share: BodyShare
) -> bytearray:
    """The body as it came. Raises ProxyError 413 or 503, and ClientGone."""
    if _declared_bytes(headers) > limit_bytes:
        raise _too_large(limit_bytes)
    return await _read_body(receive, limit_bytes, silence_s, share)


def parse_object(raw: bytes | bytearray) -> dict[str, Any]:
    """Strict JSON: no NaN, no infinite numbers, one object, bounded nesting. Raises ProxyError 400."""
    if not raw or raw.isspace():
        raise ProxyError("invalid_body", "The body is empty; a JSON object is expected.")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProxyError("invalid_body", f"The body is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ProxyError("invalid_body", "The body must be a JSON object, not another JSON value.")
    # Fewer brackets than levels cannot nest too deep; counting them is cheap, encoding once is not.
    if raw.count(b"[") + raw.count(b"{") > DEEPEST_NESTING:
        _check_nesting(value)
    return value


def _check_nesting(value: dict[str, Any]) -> None:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ProxyError(
            "invalid_body", f"The body nests deeper than {DEEPEST_NESTING} levels of lists and objects."
        ) from error


def _check_media_type(headers: Mapping[str, str]) -> None:
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        raise ProxyError(
            "unsupported_media_type", "Compressed bodies are not accepted; send the JSON as it is."
        )
    given = headers.get("content-type")
    if given is None:
        return
    media_type, *parameters = (part.strip().lower() for part in given.split(";"))
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    charsets = [p.removeprefix("charset=").strip('"') for p in parameters if p.startswith("charset=")]
    if not is_json or any(charset not in CHARSETS for charset in charsets):
        raise ProxyError(
            "unsupported_media_type",
            "The body must be JSON in UTF-8, sent with `Content-Type: application/json`.",
        )


async def _read_body(receive: Receive, limit_bytes: int, silence_s: float, share: BodyShare) -> bytearray:
    # One buffer: a body that comes byte by byte would take many times its size as a list of parts.
    body = bytearray()
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        too_slow_at = began + silence_s + len(body) / SLOWEST_BYTES_PER_S
        try:
            async with asyncio.timeout_at(min(loop.time() + silence_s, too_slow_at)):
                message = await receive()
        except TimeoutError as error:
            raise ClientGone from error
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        if len(body) + len(part) > limit_bytes:
            raise _too_large(limit_bytes)
        share.grow(len(body) + len(part), largest_bytes=limit_bytes)
        body += part
        if not message.get("more_body", False):
            return body


def _declared_bytes(headers: Mapping[str, str]) -> int:
    declared = headers.get("content-length", "")
    # The server has checked the form; this only keeps the conversion of a silly number cheap.
    return int(declared[:LONGEST_LENGTH]) if declared.isascii() and declared.isdigit() else 0


def _too_large(limit_bytes: int) -> ProxyError:
    return ProxyError(
        "body_too_large",
        f"The body is larger than {limit_bytes / MIB:g} MiB, the limit set by server.max_body.",
        # The rest of the body is not read; the connection cannot be used again.
        headers={"connection": "close"},
    )
