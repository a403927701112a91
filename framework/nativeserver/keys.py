"""API keys of requests (12 §2.2, 15 §4). Pure; called by gate."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

BEARER = b"Bearer "


class ApiKeys:
    """The keys of the server; only digests are kept, so that a comparison tells nothing of their lengths."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode(errors="surrogateescape")) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether raw headers bring a key: `Authorization`, with or without `Bearer`, or `X-Api-Key`."""
        is_known = False
        for given in _given(headers):
            digest = _digest(given)
            for known in self._digests:
                # No early end: the time must not tell which key came close.
                is_known |= hmac.compare_digest(digest, known)
        return is_known


def _given(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    for name, value in headers:
        if name == b"x-api-key":
            yield value
        elif name == b"authorization":
            yield value.removeprefix(BEARER)


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()
