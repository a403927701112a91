"""Who may use which model: access keys by digest (08 §2.9). Pure; called for every request but `/health`.

Rates are limited in `allowances`. Keys are compared as SHA-256 digests in constant time and are never kept
or logged; the name of the access table stands for them everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Protocol

from framework.proxy.errors import ProxyError
from framework.proxy.origin import check_origin
from framework.values.manifest import AccessKey, Manifest
from framework.values.request import ModelRequest

BEARER = "bearer "
EVERY_MODEL = "*"


class Judge(Protocol):
    """Told of every key that comes, by its digest."""

    def __call__(self, digest: str, *, is_right: bool) -> None:
        """Raises ProxyError 429 where it must wait."""
        ...


def nobody_guesses(digest: str, *, is_right: bool) -> None:
    """Every key may be tried."""


def authorise(
    headers: Mapping[str, str], manifest: Manifest, judge: Judge = nobody_guesses
) -> AccessKey | None:
    """The access key of a request, None where the endpoint is open.

    `headers` have lower-case names and Latin-1 values, as they came. Raises ProxyError 401, 403 or 429.
    """
    if not manifest.access:
        check_origin(headers.get("host"), headers.get("origin"), manifest.server.listen, manifest.server.cors)
        return None
    given = _credential(headers)
    if not given:
        raise ProxyError(
            "key_missing",
            "This server wants an access key: send it as `Authorization: Bearer KEY` or `X-Api-Key: KEY`.",
            headers={"www-authenticate": "Bearer"},
        )
    digest = sha256(given.encode("latin-1")).hexdigest()
    found = manifest.key_of(digest)
    judge(digest, is_right=found is not None)
    if found is None:
        raise ProxyError(
            "key_invalid", "This access key is not known here.", headers={"www-authenticate": "Bearer"}
        )
    return found


def may_use(key: AccessKey | None, request: ModelRequest) -> bool:
    """Whether a key opens a model, by its id, one of its aliases or `*`."""
    if key is None or EVERY_MODEL in key.models:
        return True
    return any(name in key.models for name in (request.id, *request.live.aliases))


def _credential(headers: Mapping[str, str]) -> str:
    authorization = headers.get("authorization", "")
    if authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip()
    return headers.get("x-api-key", "").strip()
