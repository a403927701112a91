"""Small calls to a running engine: health, properties, slots, a few tokens (06 §9-10, §12.7, 07 §11, 13 §5).

Ambient proxy settings are ignored, answers are bounded, and every call carries the launch's key but
`/health`, which needs none. Errors come back as None or False: a probe that fails says "unknown".
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Mapping
from typing import Any, Literal

import aiohttp

HEALTH_TIMEOUT_S = 2.0
PROPS_TIMEOUT_S = 5.0
# 15 §5: /slots waits for the running batch; a sample that takes longer is stale, not lost.
SLOTS_TIMEOUT_S = 3.0
# 07 §9.2 step 6: a living server on the loopback accepts in less than this, a dead one refuses at once.
CONNECT_TIMEOUT_S = 0.15
ANSWER_LIMIT_BYTES = 8 * 2**20
OK = 200
# RuntimeError: the session was closed, since the manager ends.
FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ValueError, RuntimeError)
# What this process lacks to ask anybody: files, memory, ports of its own.
OF_OURS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL, errno.EADDRINUSE}
)


def base_url(port: int) -> str:
    """Where an engine of ours listens."""
    return f"http://127.0.0.1:{port}"


def auth_headers(key: str | None) -> dict[str, str]:
    """The header that opens an engine, or none when it was launched without a key (06 §9.7)."""
    return {"Authorization": f"Bearer {key}"} if key else {}


class EngineClient:
    """Calls to all engines of the fleet through one session, created on first use."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def healthy(self, port: int) -> bool:
        """Whether `/health` answers 200 now."""
        status, _ = await self._get(port, "/health", {}, HEALTH_TIMEOUT_S)
        return status == OK

    async def answers(self, port: int, timeout_s: float) -> bool | None:
        """Whether `/health` answers anything at all within this time; None where it could not be asked."""
        try:
            await self._fetch("GET", port, "/health", {}, timeout_s)
        except FAILURES as error:
            ours = isinstance(error, RuntimeError) or getattr(error, "errno", None) in OF_OURS
            return None if ours else False
        return True

    async def props(self, port: int, key: str | None) -> tuple[int | None, Mapping[str, Any]]:
        """Status of `/props` (None: no answer) and its object, empty when there is none."""
        status, body = await self._get(port, "/props", auth_headers(key), PROPS_TIMEOUT_S)
        return status, body if status == OK and isinstance(body, dict) else {}

    async def slots(self, port: int, key: str | None) -> list[Mapping[str, Any]] | None:
        """`/slots` as a list of objects, or None."""
        status, body = await self._get(port, "/slots", auth_headers(key), SLOTS_TIMEOUT_S)
        if status != OK or not isinstance(body, list):
            return None
        return [slot for slot in body if isinstance(slot, dict)]

    async def metrics(self, port: int, key: str | None, timeout_s: float) -> bytes | None:
        """The text of `/metrics`, or None."""
        try:
            status, raw = await self._fetch("GET", port, "/metrics", auth_headers(key), timeout_s)
        except FAILURES:
            return None
        return raw if status == OK else None

    async def look(self, port: int, key: str | None, path: str, timeout_s: float) -> tuple[int | None, Any]:
        """Status of a GET (None: no answer, or none that is JSON) and its JSON value."""
        return await self._get(port, path, auth_headers(key), timeout_s)

    async def complete(
        self, port: int, key: str | None, body: Mapping[str, Any], timeout_s: float
    ) -> int | None:
        """Status of `POST /completion`, None for no answer."""
        status, _ = await self._ask("POST", port, "/completion", auth_headers(key), timeout_s, body)
        return status

    async def slot_action(
        self,
        port: int,
        key: str | None,
        slot: int,
        action: Literal["save", "restore"],
        filename: str,
        timeout_s: float,
    ) -> tuple[int | None, Any]:
        """Status of `POST /slots/N?action=...` (None: no answer) and its body, None where that is no JSON."""
        path = f"/slots/{slot}?action={action}"
        body = {"filename": filename}
        try:
            status, raw = await self._fetch("POST", port, path, auth_headers(key), timeout_s, body)
        except FAILURES:
            return None, None
        try:
            return status, json.loads(raw) if raw else None
        except ValueError:
            return status, None

    async def close(self) -> None:
        """Close the session; the client is not used again."""
        if self._session is not None:
            await self._session.close()

    async def _get(
        self, port: int, path: str, headers: Mapping[str, str], timeout_s: float
    ) -> tuple[int | None, Any]:
        return await self._ask("GET", port, path, headers, timeout_s)

    async def _ask(
        self,
        method: str,
        port: int,
        path: str,
        headers: Mapping[str, str],
        timeout_s: float,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[int | None, Any]:
        try:
            status, raw = await self._fetch(method, port, path, headers, timeout_s, body)
            return status, json.loads(raw) if raw else None
        except FAILURES:
            return None, None

    async def _fetch(
        self,
        method: str,
        port: int,
        path: str,
        headers: Mapping[str, str],
        timeout_s: float,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[int, bytes]:
        """Status and body of an answer. Raises one of FAILURES."""
        if self._session is None:
            # Probes must not hold connections: an idle one would keep a server from ending cleanly.
            connector = aiohttp.TCPConnector(force_close=True, limit=0)
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        async with asyncio.timeout(timeout_s):
            url = base_url(port) + path
            async with self._session.request(method, url, headers=headers, json=body) as answer:
                raw = await answer.content.read(ANSWER_LIMIT_BYTES + 1)
                while raw and len(raw) <= ANSWER_LIMIT_BYTES and not answer.content.at_eof():
                    raw += await answer.content.read(ANSWER_LIMIT_BYTES + 1 - len(raw))
                return answer.status, raw


async def accepts(url: str) -> bool:
    """Whether the port of an engine's base URL takes a connection now."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
