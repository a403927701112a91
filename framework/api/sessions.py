"""Sessions of browsers that use the dashboard. In memory: they end with the process, as the token does.

A session remembers what the visitor proved, never what that allows: the role is looked up in the manifest
in force at each request (`auth`), so that a key taken out of the file loses its sessions at once.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

# A working day without a click; the page then asks again.
IDLE_LIMIT_S = 12 * 3600.0
# Each kind has its own room, so that cookie-less visitors cannot push signed-in people out.
SESSIONS_PER_KIND = 256
SECRET_BYTES = 32

SessionKind = Literal["token", "key", "open"]


@dataclass(frozen=True)
class Session:
    """One browser. `key_sha256` is set for kind `key`; `csrf_token` must come with every action."""

    kind: SessionKind
    name: str
    csrf_token: str
    key_sha256: str | None = None


class Sessions:
    """All sessions of one manager. Cookie values are kept as digests only."""

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        new_secret: Callable[[], str] = lambda: secrets.token_urlsafe(SECRET_BYTES),
    ) -> None:
        self._monotonic_s = monotonic_s
        self._new_secret = new_secret
        self._kept: dict[SessionKind, OrderedDict[str, tuple[Session, float]]] = {
            "token": OrderedDict(),
            "key": OrderedDict(),
            "open": OrderedDict(),
        }

    def create(self, kind: SessionKind, name: str, key_sha256: str | None = None) -> tuple[str, Session]:
        """Start a session; returns the cookie value, which is kept nowhere else, and the session."""
        cookie = self._new_secret()
        session = Session(kind, name, self._new_secret(), key_sha256)
        kept = self._kept[kind]
        kept[_digest(cookie)] = (session, self._monotonic_s())
        if len(kept) > SESSIONS_PER_KIND:
            kept.popitem(last=False)
        return cookie, session

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie value, which counts as a use; None when unknown or idle too long."""
        if not cookie:
            return None
        digest = _digest(cookie)
        for kept in self._kept.values():
            entry = kept.get(digest)
            if entry is None:
                continue
            session, used_at = entry
            if self._monotonic_s() - used_at > IDLE_LIMIT_S:
                del kept[digest]
                return None
            kept[digest] = (session, self._monotonic_s())
            kept.move_to_end(digest)
            return session
        return None

    def end(self, cookie: str | None) -> None:
        """Sign out; an unknown cookie is fine."""
        if cookie:
            for kept in self._kept.values():
                kept.pop(_digest(cookie), None)

    def end_everywhere(self, session: Session) -> None:
        """End this session and all others that the same key, or the same token, began."""
        kept = self._kept[session.kind]
        same = [digest for digest, (other, _) in kept.items() if _proof(other) == _proof(session)]
        for digest in same:
            del kept[digest]


def _proof(session: Session) -> str:
    """What its visitor has shown. A key is known by its digest: its name in the manifest may change."""
    return session.key_sha256 or session.name


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).hexdigest()
